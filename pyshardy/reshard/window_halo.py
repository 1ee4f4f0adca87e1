"""The data that shards need from each other when windows move along a sharded dimension.

Along one dimension every shard needs a stretch of the input. All stretches have the same length, and each begins at
the same distance after the previous one. If the input is dilated, its elements stand at every n-th position;
stretches are measured in positions. A part is the data that a shard needs from the shard a number of *hops* away.
"""

from __future__ import annotations

from typing import NamedTuple

from pyshardy.core.mesh import check_count


class Stretches(NamedTuple):
    """The positions of the dilated input that every shard needs.

    Attributes:
        size: Size of the input, in elements.
        shards: Number of shards.
        first: The position where the stretch of the first shard begins; negative if that is in the padding.
        step: The distance from a stretch's start to the start of the next shard's stretch; may be negative.
        extent: The number of positions in a stretch.
        used: The number of shards that compute anything; the shards after them need nothing.
        dilation: The distance between neighbouring elements, in positions.
    """

    size: int
    shards: int
    first: int
    step: int
    extent: int
    used: int
    dilation: int = 1

    @property
    def shard(self) -> int:
        """Size of a shard of the input."""
        return -(-self.size // self.shards)

    def begin(self, index: int) -> int:
        """The position where the stretch of a shard begins."""
        return self.first + index * self.step

    def elements(self, index: int) -> tuple[int, int]:
        """The elements in the stretch of a shard, as first and end; they may lie before or after the data."""
        begin = self.begin(index)
        return -(-begin // self.dilation), (begin + self.extent - 1) // self.dilation + 1


class NeighbourPart(NamedTuple):
    """The data that shards need from the shard `hop` shards after them, or before them if `hop` is negative.

    Attributes:
        hop: The number of shards after.
        first: The first element of that shard that any shard needs.
        end: The element after the last one.
    """

    hop: int
    first: int
    end: int


class Fetch(NamedTuple):
    """How shards get their stretches.

    Attributes:
        parts: The parts that they get from other shards, in order; their own shard is not among them.
        begin: The start of the resulting buffer, relative to the own shard; the parts and the own shard lie in it.
        end: The end of the buffer.
        starts: Per shard, the start in the buffer of the elements to keep; they may exceed it on both sides.
        length: The number of elements to keep.
        phases: Per shard, the position in the stretch of the first element to keep.
    """

    parts: tuple[NeighbourPart, ...]
    begin: int
    end: int
    starts: tuple[int, ...]
    length: int
    phases: tuple[int, ...]

    @property
    def moved(self) -> int:
        """The number of elements that a device sends."""
        return sum(part.end - part.first for part in self.parts)

    @property
    def start(self) -> int | None:
        """The start of the elements to keep, if it is the same for all shards."""
        return _only(self.starts)

    @property
    def phase(self) -> int | None:
        """The position of the first element to keep, if it is the same for all shards."""
        return _only(self.phases)


def fetch_of(stretches: Stretches) -> Fetch | None:
    """How shards get their stretches from other shards; None if gathering the whole input moves no more.

    Raises:
        InvalidShardingError: There are too many shards to look at each.

    >>> found = fetch_of(Stretches(16, 4, first=-1, step=4, extent=6, used=4))
    >>> found.parts
    (NeighbourPart(hop=-1, first=3, end=4), NeighbourPart(hop=1, first=0, end=1))
    >>> found.begin, found.end, found.start, found.length
    (-1, 5, 0, 6)
    >>> fetch_of(Stretches(16, 4, first=-15, step=4, extent=19, used=4)) is None
    True
    """
    check_count(stretches.shards, "finding what shards need from their neighbours", "shards")
    shard = stretches.shard
    found: dict[int, NeighbourPart] = {}
    for index in range(stretches.used):
        first, end = stretches.elements(index)
        first, end = max(0, first), min(stretches.size, end)
        for other in range(first // shard, -(-end // shard)) if first < end else ():
            low, high = max(0, first - other * shard), min(shard, end - other * shard)
            old = found.get(other - index, NeighbourPart(other - index, low, high))
            found[other - index] = NeighbourPart(old.hop, min(old.first, low), max(old.end, high))
    parts = tuple(part for hop, part in sorted(found.items()) if hop != 0)
    begin = min([0, *(part.hop * shard + part.first for part in parts)])
    end = max([shard, *(part.hop * shard + part.end for part in parts)])
    fetch = _kept(stretches, parts, begin, end, shard)
    return fetch if fetch.moved < shard * (stretches.shards - 1) else None


def fetch_of_whole(stretches: Stretches) -> Fetch:
    """How shards get their stretches if every device has the whole input.

    >>> fetch_of_whole(Stretches(16, 4, first=-1, step=4, extent=6, used=4)).starts
    (-1, 3, 7, 11)
    """
    check_count(stretches.shards, "finding what shards need of a dimension", "shards")
    return _kept(stretches, (), 0, stretches.size, 0)


def _kept(stretches: Stretches, parts: tuple[NeighbourPart, ...], begin: int, end: int, shard: int) -> Fetch:
    elements = [stretches.elements(index) for index in range(stretches.used)]
    starts = [first - index * shard - begin for index, (first, _) in enumerate(elements)]
    phases = [first * stretches.dilation - stretches.begin(index) for index, (first, _) in enumerate(elements)]
    length = max(1, *(end - first for first, end in elements))
    return Fetch(parts, begin, end, _short(starts), length, _short(phases))


def _short(numbers: list[int]) -> tuple[int, ...]:
    """The numbers, or one number if they are all equal."""
    return tuple(numbers[:1] if len(set(numbers)) == 1 else numbers)


def _only(numbers: tuple[int, ...]) -> int | None:
    return numbers[0] if len(numbers) == 1 else None
