"""Many short lists of numbers in one array: per-op and per-value data without an object for each."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import overload

NUMBER = "i"
"""The type code of the numbers in `array`: four bytes, signed."""


def zeros(count: int) -> array[int]:
    """An array of `count` zeros."""
    return array(NUMBER, bytes(array(NUMBER).itemsize * count))


class Lists(Sequence[tuple[int, ...]]):
    """Lists of numbers, one after the other.

    Args:
        numbers: The numbers of all lists.
        starts: Where each list starts, and where the last one ends.

    >>> Lists.of([(3, 4), (), (5,)])[0]
    (3, 4)
    """

    __slots__ = ("numbers", "starts")

    def __init__(self, numbers: array[int], starts: array[int]) -> None:
        self.numbers = numbers
        self.starts = starts

    @classmethod
    def of(cls, lists: Iterable[Iterable[int]]) -> Lists:
        """Lists with this content."""
        found = cls(array(NUMBER), zeros(1))
        found.extend(lists)
        return found

    @classmethod
    def empty(cls, count: int, capacity: int) -> Lists:
        """`count` lists, to be filled by writing the arrays."""
        return cls(zeros(capacity), zeros(count + 1))

    def cut(self) -> None:
        """Drop the part of the array behind the last list."""
        del self.numbers[self.starts[-1] :]

    def extend(self, lists: Iterable[Iterable[int]]) -> None:
        """Append lists."""
        for one in lists:
            self.numbers.extend(one)
            self.starts.append(len(self.numbers))

    def extend_empty(self, count: int) -> None:
        """Append `count` empty lists."""
        self.starts.extend(self.starts[-1:] * count)

    def copy(self) -> Lists:
        """A copy that can be changed."""
        return Lists(self.numbers[:], self.starts[:])

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, index: int) -> tuple[int, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[int, ...]]: ...
    def __getitem__(self, index: int | slice) -> tuple[int, ...] | Sequence[tuple[int, ...]]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        return tuple(self.numbers[self.starts[index] : self.starts[index + 1]])
