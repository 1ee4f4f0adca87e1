"""Things by number, so that what comes often is written once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Interned(Generic[T]):
    """Different things in the order in which they first came.

    Attributes:
        items: The things.

    >>> names = Interned[str]()
    >>> [names.number(name) for name in ("a", "b", "a")], names.items
    ([0, 1, 0], ['a', 'b'])
    """

    def __init__(self) -> None:
        self.items: list[T] = []
        self._numbers: dict[T, int] = {}

    def number(self, item: T) -> int:
        """The number of a thing, a new one if it was not there."""
        number = self._numbers.setdefault(item, len(self.items))
        if number == len(self.items):
            self.items.append(item)
        return number
