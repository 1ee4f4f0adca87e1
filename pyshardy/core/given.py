"""Checks of what a caller passes: lists, shapes, ranks and text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyshardy.core.intern import as_integer
from pyshardy.core.text import named_type
from pyshardy.errors import InvalidShardingError

MOST_DIMENSIONS = 4096
"""A tensor has no more dimensions; XLA and NumPy have far lower limits."""


def as_tuple(values: Iterable[Any] | Any, doing: str, needed: str) -> tuple[Any, ...]:
    """The values of an iterable, as a tuple; text is refused.

    Raises:
        InvalidShardingError: The value is not iterable, or is text.

    >>> as_tuple([1, 2], "counting", "numbers")
    (1, 2)
    """
    if isinstance(values, (str, bytes)):
        raise InvalidShardingError(doing, got=repr(values), needed=needed)
    try:
        return tuple(values)
    except TypeError as error:
        raise InvalidShardingError(doing, got=named_type(values), needed=needed) from error


def as_rank(rank: object, doing: str) -> int:
    """The number of dimensions of a tensor.

    Raises:
        InvalidShardingError: It is not an integer from 0 to `MOST_DIMENSIONS`.

    >>> as_rank(3, "counting")
    3
    """
    found = as_integer(rank, doing)
    if not 0 <= found <= MOST_DIMENSIONS:
        raise InvalidShardingError(doing, got=f"rank {rank}", needed=f"a rank from 0 to {MOST_DIMENSIONS}")
    return found


def as_shape(shape: Iterable[Any] | Any, doing: str) -> tuple[int, ...]:
    """The sizes of the dimensions of a tensor.

    Raises:
        InvalidShardingError: It is no list of integers.

    >>> as_shape([8, 4], "counting")
    (8, 4)
    """
    return tuple([as_integer(size, doing) for size in as_tuple(shape, doing, "a shape, such as (8, 4)")])


def as_text(text: object, doing: str, needed: str) -> str:
    """The text.

    Raises:
        InvalidShardingError: The value is not text.

    >>> as_text("mesh", "naming", "a name")
    'mesh'
    """
    if not isinstance(text, str):
        raise InvalidShardingError(doing, got=named_type(text), needed=needed)
    return text
