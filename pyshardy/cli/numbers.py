"""Numbers on command lines."""

from __future__ import annotations

import argparse
import math

from pyshardy.errors import UsageError

_MOST_DIGITS = 30
"""The most digits of a number. More take long to convert, and Python refuses very many."""


def whole_number(text: str, doing: str, low: int, high: int) -> int:
    """The whole number in a text.

    Args:
        text: The text.
        doing: The action, for the error.
        low: The smallest number allowed.
        high: The largest.

    Raises:
        UsageError: The text is not a whole number, or the number is outside this range.

    >>> whole_number("12", "reading", 0, 99)
    12
    """
    is_number = text.isascii() and text.isdecimal()
    if is_number and len(text) <= _MOST_DIGITS and low <= int(text) <= high:
        return int(text)
    shown = text if len(text) <= _MOST_DIGITS else f"{text[:_MOST_DIGITS]}..."
    is_large = is_number and text.strip("0") and (len(text) > _MOST_DIGITS or int(text) > high)
    raise UsageError(doing, got=f"'{shown}'", needed=f"a whole number from {low}{f' to {high}' * bool(is_large)}")


def number_argument(text: str, low: int, high: int) -> int:
    """The whole number in an argument, for `argparse`.

    Args:
        text: The text.
        low: The smallest number allowed.
        high: The largest.

    Raises:
        ArgumentTypeError: The text is not a whole number, or the number is outside this range.
    """
    try:
        return whole_number(text, "reading a number", low, high)
    except UsageError as error:
        raise argparse.ArgumentTypeError(f"got {error.got}, needed {error.needed}") from error


def seconds_argument(text: str) -> float:
    """The seconds in an argument, for `argparse`.

    Raises:
        ArgumentTypeError: The text is not a number of seconds.

    >>> seconds_argument("2.5")
    2.5
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"got '{text}', needed a number of seconds")
    return value
