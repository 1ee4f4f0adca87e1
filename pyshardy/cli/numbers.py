"""Numbers on command lines."""

from __future__ import annotations

from pyshardy.errors import UsageError

_MOST_DIGITS = 30
"""More digits are not read as a number: that takes long, and Python refuses very many."""


def whole_number(text: str, doing: str, low: int, high: int) -> int:
    """The whole number that a text is.

    Args:
        text: The text.
        doing: What is being done, for the error.
        low: The smallest number allowed.
        high: The largest.

    Raises:
        UsageError: It is none, or not in this range.

    >>> whole_number("12", "reading", 0, 99)
    12
    """
    is_number = text.isascii() and text.isdecimal()
    if is_number and len(text) <= _MOST_DIGITS and low <= int(text) <= high:
        return int(text)
    shown = text if len(text) <= _MOST_DIGITS else f"{text[:_MOST_DIGITS]}..."
    is_large = is_number and text.strip("0") and (len(text) > _MOST_DIGITS or int(text) > high)
    raise UsageError(doing, got=f"'{shown}'", needed=f"a whole number from {low}{f' to {high}' * bool(is_large)}")
