"""Locations in bytecode, where text and bytecode express different things.

Source: docs/bytecode.md#locations
"""

from __future__ import annotations

from pyshardy.ir.bytecode.numbers import NumberReader, encode_numbers

LINE_AND_COLUMN, RANGE = 11, 22
"""The kinds of attributes for a place in a file and for a range of places."""


def has_lost_range(text: str | bytes) -> bool:
    """Whether the text of a module or location has a location that bytecode does not keep.

    MLIR keeps only the line of a range within one line that starts at column 0.

    >>> has_lost_range('"model.py":8:0 to :5'), has_lost_range('"model.py":8:1 to :5')
    (True, False)
    """
    return b":0 to :" in text if isinstance(text, bytes) else ":0 to :" in text


def line_as_place(entry: bytes) -> bytes | None:
    """For a range that is only a line: the place that MLIR makes of its text, with column 0. None for any other entry.

    MLIR treats the two as different and would print two locations if the number gave one and the text the other.
    """
    reader = NumberReader(entry)
    if reader.next() != RANGE:
        return None
    file = reader.next()
    if reader.next() != 1:  # the count of numbers that follow: only the line
        return None
    return encode_numbers([LINE_AND_COLUMN, file, reader.next(), 0])
