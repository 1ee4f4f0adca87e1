"""Locations in bytecode, as far as text and bytecode say different things of them.

Source: docs/bytecode.md#locations
"""

from __future__ import annotations

from pyshardy.bytecode.numbers import NumberReader, encode_numbers

LINE_AND_COLUMN, RANGE = 11, 22
"""The kinds of attributes that are a place in a file, and a range of places."""


def has_lost_range(text: str | bytes) -> bool:
    """Whether the text of a module or location has a location that bytecode does not keep.

    Of a range within one line MLIR keeps only the line, if it starts at column 0.

    >>> has_lost_range('"model.py":8:0 to :5'), has_lost_range('"model.py":8:1 to :5')
    (True, False)
    """
    return b":0 to :" in text if isinstance(text, bytes) else ":0 to :" in text


def line_as_place(entry: bytes) -> bytes | None:
    """A range that is a line alone as what MLIR makes of its text: line and column 0; None for any other entry.

    The two are not the same to MLIR, which would print two locations where one is known by its number and by its text.
    """
    reader = NumberReader(entry)
    if reader.next() != RANGE:
        return None
    file = reader.next()
    if reader.next() != 1:  # how many numbers follow: the line alone
        return None
    return encode_numbers([LINE_AND_COLUMN, file, reader.next(), 0])
