"""Numbers for repeated items, so that each is written once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

_T = TypeVar("_T", bound=Hashable)


class ItemTable(Generic[_T]):
    """Distinct items in the order of their first appearance.

    Attributes:
        items: The items.

    >>> names = ItemTable[str]()
    >>> [names.number(name) for name in ("a", "b", "a")], names.items
    ([0, 1, 0], ['a', 'b'])
    """

    def __init__(self) -> None:
        self.items: list[_T] = []
        self._numbers: dict[_T, int] = {}

    def number(self, item: _T) -> int:
        """The number of an item; a new item gets a new number."""
        number = self._numbers.setdefault(item, len(self.items))
        if number == len(self.items):
            self.items.append(item)
        return number
