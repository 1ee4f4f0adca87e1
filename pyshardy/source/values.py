"""How the values are called that lines of the source compute."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ValueFact:
    """An intermediate value, which a line of the source computes.

    Attributes:
        name: In words, such as "`x` of `block`".
        place: The line, such as "model.py:12".
        columns: The columns of the expression in its lines: its first, and the one after its last, from 0.
        shape: Sizes of its dimensions.
        element: MLIR's text of the element type.
        bytes: Its size as a whole.
        count: How many values the line computes, such as one of every layer.
    """

    name: str
    place: str
    columns: tuple[int, int]
    shape: tuple[int, ...]
    element: str
    bytes: int
    count: int

    @property
    def key(self) -> str:
        """The name that no other value has: "`x` of `block` at model.py:12:8-20"."""
        return unique_name(self.name, self.place, self.columns)

    @property
    def keys(self) -> frozenset[str]:
        """All that it may be called by."""
        file = self.place.replace("\\", "/").rsplit("/", 1)[-1]
        places = (self.place, file)
        return frozenset((self.name, self.key, *places, *(f"{self.name} at {place}" for place in places)))


def unique_name(name: str, place: str, columns: tuple[int, int]) -> str:
    """The name of an intermediate value that no other value has.

    Args:
        name: The value, in words.
        place: The line.
        columns: The columns of the expression.

    >>> unique_name("`x` of `block`", "model.py:12", (8, 20))
    '`x` of `block` at model.py:12:8-20'
    """
    return f"{name} at {place}:{columns[0]}-{columns[1]}"


def value_text(name: str, function: str) -> str:
    """A value that a line of a function computes, in words.

    Args:
        name: The variable that it is assigned to; "" for a returned value.
        function: The function; "" if it is unknown.

    >>> value_text("x", "block"), value_text("", "block")
    ('`x` of `block`', 'what the line makes of `block`')
    """
    what = f"`{name}`" if name else "what the line makes"
    return f"{what} of `{function}`" if function else what
