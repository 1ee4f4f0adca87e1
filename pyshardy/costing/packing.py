"""Packs buffers into memory: the largest or the longest-lived first, each in the smallest free hole."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from typing import NamedTuple


class Lifetime(NamedTuple):
    """A buffer that is alive from one time to another, both inclusive."""

    bytes: int
    start: int
    end: int


def packed_bytes(buffers: Iterable[Lifetime], alignment: int = 1) -> int:
    """The memory of packed buffers; it is at least what is alive at any time.

    It places the largest buffers first, or those that live longest, whichever takes less, as XLA does. It does not pad
    the last buffer.

    >>> packed_bytes([Lifetime(4, 0, 1), Lifetime(2, 2, 3), Lifetime(3, 1, 2)])
    7
    """
    found = [*buffers]
    by_size = sorted(found, key=lambda one: (-one.bytes, one.start - one.end, one.start))
    by_time = sorted(found, key=lambda one: (one.start - one.end, -one.bytes, one.start))
    return min(_packed(by_size, alignment), _packed(by_time, alignment))


def _packed(buffers: Iterable[Lifetime], alignment: int) -> int:
    """The memory of buffers that are placed in this order."""
    placed: list[tuple[int, int, int, int]] = []
    most = 0
    for buffer in buffers:
        size = -(-buffer.bytes // alignment) * alignment
        offset = _best_hole([one for one in placed if one[2] <= buffer.end and buffer.start <= one[3]], size)
        insort(placed, (offset, offset + size, buffer.start, buffer.end))
        most = max(most, offset + buffer.bytes)
    return most


def _best_hole(neighbours: list[tuple[int, int, int, int]], size: int) -> int:
    """The start of the smallest hole between neighbours in order of position; the end of the last if there is none."""
    best: tuple[int, int] | None = None
    top = 0
    for low, high, _, _ in neighbours:
        if low - top >= size and (best is None or low - top < best[0]):
            best = (low - top, top)
        top = max(top, high)
    return top if best is None else best[1]
