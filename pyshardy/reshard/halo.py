"""The neighbours that a shard needs for a window of its data, and the position of the window.

Along one dimension an input of `size` elements becomes an output; every shard computes equally many elements of it.
The elements of the input that a shard needs are its window; the shards that hold them are *hops* away.

Source: docs/semantics/partitioner.md#halo-exchange
"""

from __future__ import annotations

from typing import NamedTuple

from pyshardy.core.mesh import check_count


class Window(NamedTuple):
    """How one sharded dimension of the output comes from that of the input.

    Attributes:
        size: Size of the input.
        out_size: Size of the output.
        shards: Number of shards of both.
        low: The padding before the input, in elements; negative if elements are cut off.
        dilation: Distance in the output between neighbouring elements of the input.
        stride: Distance in the input between neighbouring elements of the output.
    """

    size: int
    out_size: int
    shards: int
    low: int
    dilation: int = 1
    stride: int = 1

    @property
    def shard(self) -> int:
        """Size of a shard of the input."""
        return -(-self.size // self.shards)

    @property
    def out_shard(self) -> int:
        """Size of a shard of the output."""
        return -(-self.out_size // self.shards)

    @property
    def is_whole_slice(self) -> bool:
        """Whether the output is every n-th element of the whole input, and no shard of either is padded."""
        is_divisible = self.size % self.shards == self.out_size % self.shards == 0
        is_all = self.low == 0 and self.dilation == 1 and self.out_size * self.stride == self.size
        return is_all and self.stride > 1 and is_divisible


Interval = tuple[int, int]
"""A part of a shard: the first element, and the one after the last."""


class Halo(NamedTuple):
    """The data that a shard gets from its neighbours.

    Attributes:
        left: The number of shards before its own that it needs.
        right: The number of shards after its own that it needs.
        moves: Whether any shard needs data of others, or needs nothing at all.
        footprint: Size of the window, in the dilated input.
        slope: How much further, relative to its shard, the window of each next shard begins.
        offset: The start of the first shard's window in the data that it got, after a margin of the footprint.
    """

    left: int
    right: int
    moves: bool
    footprint: int
    slope: int
    offset: int


def is_free_slice(size: int, out_size: int, start: int, stride: int, shards: int) -> bool:
    """Whether every shard of a slice lies at the front of the same shard of its input.

    >>> is_free_slice(10, 9, 0, 1, 2), is_free_slice(10, 8, 0, 1, 2)
    (True, False)
    """
    if shards <= 1:
        return True
    return start == 0 and stride == 1 and min(size, out_size) >= 0 and -(-size // shards) == -(-out_size // shards)


def is_free_pad(size: int, out_size: int, low: int, interior: int, shards: int) -> bool:
    """Whether every shard of a padded tensor needs only the same shard of its input.

    Raises:
        InvalidShardingError: There are too many shards to look at each.

    >>> is_free_pad(10, 12, 1, 0, 2), is_free_pad(10, 12, 2, 0, 2)
    (True, False)
    """
    if shards <= 1:
        return True
    if interior or size < 0:
        return False
    check_count(shards, "finding what shards need from their neighbours", "shards")
    shard, out_shard = -(-size // shards), -(-out_size // shards)
    for index in range(shards):
        first = max(0, index * out_shard - low)
        last = min(size - 1, index * out_shard - low + out_shard - 1)
        if first <= last and not index * shard <= first <= last < (index + 1) * shard:
            return False
    return True


def halo_of(window: Window) -> Halo | None:
    """The data that shards need from their neighbours; None if it is too far away.

    Args:
        window: How the output comes from the input.

    Raises:
        InvalidShardingError: There are too many shards to look at each.

    >>> halo_of(Window(16, 20, 4, low=3))
    Halo(left=1, right=0, moves=True, footprint=5, slope=1, offset=6)
    """
    check_count(window.shards, "finding what shards need from their neighbours", "shards")
    shard, step = window.shard, window.out_shard * window.stride
    footprint = max(0, step - window.stride + 1)
    needed = [_needed(window, index * step, footprint) for index in range(window.shards)]
    left = right = 0
    moves = False
    for index, part in enumerate(needed):
        held = None if part is None else (part[0] // shard, (part[1] - 1) // shard)
        moves |= held != (index, index)
        if held is not None:
            left, right = max(left, index - held[0]), max(right, held[1] - index)
    if left + right + 1 >= window.shards and (left > 1 or right > 1):
        return None
    dilation = window.dilation
    offset = -window.low + left * shard * dilation + footprint * dilation
    return Halo(left, right, moves, footprint, step - shard * dilation, offset)


def _needed(window: Window, position: int, footprint: int) -> Interval | None:
    """The elements of the window at a position of the padded input; None if it is empty.

    The window is taken as wide as without the dilation: too wide does no harm.
    """
    dilation, start = window.dilation, position - window.low
    first = abs(start) // dilation if start >= 0 else -(abs(start) // dilation)
    end = first + footprint
    first, end = max(0, first), min(window.size, end)
    return (first, end) if first < end else None
