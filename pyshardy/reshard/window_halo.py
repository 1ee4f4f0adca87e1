"""What shards need of each other where windows move along a sharded dimension: convolutions, reductions of windows.

Along one dimension every shard needs a stretch of the input. The stretches of all shards are equally long, and each
begins by the same distance behind the one before. Where the input is dilated, its elements stand at every n-th
position; stretches are measured in positions. What a shard needs of the one so many *hops* behind it is a part.
"""

from __future__ import annotations

from typing import NamedTuple

from pyshardy.core.mesh import check_count


class Stretches(NamedTuple):
    """Which positions of the dilated input every shard needs.

    Attributes:
        size: Size of the input, in elements.
        shards: Number of shards.
        first: The position at which the stretch of the first shard begins; negative if that is in the padding.
        step: How far behind it that of the next shard begins; negative if it is before it.
        extent: How many positions a stretch has.
        used: How many shards have anything to compute; those behind them need nothing.
        dilation: The distance of neighbouring elements, in positions.
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
        """The position at which the stretch of a shard begins."""
        return self.first + index * self.step

    def elements(self, index: int) -> tuple[int, int]:
        """The elements in the stretch of a shard, also those before and behind the data: the first, and the end."""
        begin = self.begin(index)
        return -(-begin // self.dilation), (begin + self.extent - 1) // self.dilation + 1


class Part(NamedTuple):
    """What shards need of the one so many hops behind them, or before them if that is negative.

    Attributes:
        hop: How many shards behind.
        first: The first element of that shard that any needs.
        end: The one behind the last.
    """

    hop: int
    first: int
    end: int


class Fetch(NamedTuple):
    """How shards get their stretches.

    Attributes:
        parts: What they get of others, in order; the own shard is not among them.
        begin: Where what they have then begins, relative to the own shard; the parts and the own shard lie in it.
        end: Where it ends.
        starts: Per shard, where the elements to keep begin in that; they may reach out of it on both sides.
        length: How many elements to keep.
        phases: Per shard, at which position of the stretch the first of these is.
    """

    parts: tuple[Part, ...]
    begin: int
    end: int
    starts: tuple[int, ...]
    length: int
    phases: tuple[int, ...]

    @property
    def moved(self) -> int:
        """How many elements a device sends."""
        return sum(part.end - part.first for part in self.parts)

    @property
    def start(self) -> int | None:
        """Where the elements to keep begin, if that is the same for all shards."""
        return _only(self.starts)

    @property
    def phase(self) -> int | None:
        """The position of the first element to keep, if that is the same for all shards."""
        return _only(self.phases)


def fetch_of(stretches: Stretches) -> Fetch | None:
    """How shards get their stretches from other shards; None if all of them getting everything moves no more.

    Raises:
        InvalidShardingError: There are too many shards to look at each.

    >>> found = fetch_of(Stretches(16, 4, first=-1, step=4, extent=6, used=4))
    >>> found.parts
    (Part(hop=-1, first=3, end=4), Part(hop=1, first=0, end=1))
    >>> found.begin, found.end, found.start, found.length
    (-1, 5, 0, 6)
    >>> fetch_of(Stretches(16, 4, first=-15, step=4, extent=19, used=4)) is None
    True
    """
    check_count(stretches.shards, "finding what shards need from their neighbours", "shards")
    shard = stretches.shard
    found: dict[int, Part] = {}
    for index in range(stretches.used):
        first, end = stretches.elements(index)
        first, end = max(0, first), min(stretches.size, end)
        for other in range(first // shard, -(-end // shard)) if first < end else ():
            low, high = max(0, first - other * shard), min(shard, end - other * shard)
            old = found.get(other - index, Part(other - index, low, high))
            found[other - index] = Part(old.hop, min(old.first, low), max(old.end, high))
    parts = tuple(part for hop, part in sorted(found.items()) if hop != 0)
    begin = min([0, *(part.hop * shard + part.first for part in parts)])
    end = max([shard, *(part.hop * shard + part.end for part in parts)])
    fetch = _kept(stretches, parts, begin, end, shard)
    return fetch if fetch.moved < shard * (stretches.shards - 1) else None


def fetch_of_whole(stretches: Stretches) -> Fetch:
    """How shards get their stretches where every device has all of the input.

    >>> fetch_of_whole(Stretches(16, 4, first=-1, step=4, extent=6, used=4)).starts
    (-1, 3, 7, 11)
    """
    check_count(stretches.shards, "finding what shards need of a dimension", "shards")
    return _kept(stretches, (), 0, stretches.size, 0)


def _kept(stretches: Stretches, parts: tuple[Part, ...], begin: int, end: int, shard: int) -> Fetch:
    elements = [stretches.elements(index) for index in range(stretches.used)]
    starts = [first - index * shard - begin for index, (first, _) in enumerate(elements)]
    phases = [first * stretches.dilation - stretches.begin(index) for index, (first, _) in enumerate(elements)]
    length = max(1, *(end - first for first, end in elements))
    return Fetch(parts, begin, end, _short(starts), length, _short(phases))


def _short(numbers: list[int]) -> tuple[int, ...]:
    """The numbers, or the one that they all are."""
    return tuple(numbers[:1] if len(set(numbers)) == 1 else numbers)


def _only(numbers: tuple[int, ...]) -> int | None:
    return numbers[0] if len(numbers) == 1 else None
