"""MLIR bytecode: the one call that hands out a whole module.

The bindings take a call per op, per operand and per type; the bytecode of a module takes one call for all. Only its
frame is read here, and the names of its ops; `read.py` walks through the ops. Types, attributes and locations have
numbers in it; what they are is asked of the bindings, once per number. The format is described in MLIR's
documentation ("MLIR Bytecode Format"); the version written is fixed here, so that a newer MLIR writes the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from typing import Any, NamedTuple

from pyshardy.core.text import quote
from pyshardy.errors import InvalidModuleError
from pyshardy.ir.strings import is_plain

VERSION = 6
"""The version of the format that is asked for: known to jaxlib 0.10 and to all after it."""

HAS_ATTRS = 1
HAS_RESULTS = 2
HAS_OPERANDS = 4
HAS_SUCCESSORS = 8
HAS_REGIONS = 16
HAS_USE_ORDERS = 32
HAS_PROPERTIES = 64

MAGIC = b"ML\xefR" + bytes([VERSION << 1 | 1])
STRINGS, DIALECTS, ATTRS_AND_TYPES, OFFSETS, IR, RESOURCES, RESOURCE_OFFSETS, DIALECT_VERSIONS, PROPERTIES = range(9)


class Bytecode(NamedTuple):
    """The parts of a module in bytecode that `read.py` needs, and `emit.py` to write such a module again.

    Attributes:
        data: All bytes.
        sections: Per kind of section, where its content starts and ends.
        dialects: The names of the dialects, by number.
        names: The full names of its ops, by number.
        is_registered: Per name, whether the dialect that has it is loaded.
        has_odd_strings: Whether any string is no UTF-8.
    """

    data: bytes
    sections: dict[int, tuple[int, int]]
    dialects: list[str]
    names: list[str]
    is_registered: list[bool]
    has_odd_strings: bool

    @property
    def start(self) -> int:
        """Where the block with the module op starts."""
        return self.sections[IR][0]

    def content(self, section: int) -> bytes:
        """The content of a section."""
        start, end = self.sections[section]
        return self.data[start:end]


def bytecode_of(module: Any) -> Bytecode:
    """The bytecode of an MLIR module."""
    stream = BytesIO()
    module.operation.write_bytecode(stream, VERSION)
    return parse_bytecode(stream.getvalue())


def parse_bytecode(data: bytes) -> Bytecode:
    """The parts of a module in bytecode."""
    assert data.startswith(MAGIC), "bytecode of another version"
    position = data.index(0, len(MAGIC)) + 1  # behind the name of the producer
    sections: dict[int, tuple[int, int]] = {}
    while position < len(data):
        section, position, end = section_at(data, position)
        sections[section] = position, end
        position = end
    strings = _strings(data, sections[STRINGS][0])
    dialects, position = _dialects(data, sections[DIALECTS][0], strings)
    names, is_registered = _op_names(data, position, strings, dialects)
    return Bytecode(data, sections, dialects, names, is_registered, not all(map(is_plain, strings)))


def section_at(data: bytes, position: int) -> tuple[int, int, int]:
    """The kind of the section at a position, where its content starts, and where it ends."""
    kind = data[position]
    length, position = number_at(data, position + 1)
    if kind & 128:
        alignment, position = number_at(data, position)
        position += -position % alignment
    return kind & 127, position, position + length


_LENGTH = bytes([(first & -first).bit_length() or 9 for first in range(256)])
"""Per first byte of a number, how many bytes it takes."""


def number_at(data: bytes | bytearray, position: int) -> tuple[int, int]:
    """The number at a position, and the position behind it.

    The zeros at the low end of the first byte tell how many bytes follow it; the bits above the lowest one are those
    of the number.

    >>> number_at(bytes([7]), 0), number_at(bytes([0b10, 1]), 0)
    ((3, 1), (64, 2))
    """
    first = data[position]
    if first & 1:
        return first >> 1, position + 1
    length = _LENGTH[first]
    if length == 3:
        return (first | data[position + 1] << 8 | data[position + 2] << 16) >> 3, position + 3
    if length == 9:
        return int.from_bytes(data[position + 1 : position + 9], "little"), position + 9
    return int.from_bytes(data[position : position + length], "little") >> length, position + length


_SMALL = tuple([bytes([number << 1 | 1]) for number in range(128)])


def encode_number(number: int) -> bytes:
    """The inverse of `number_at`.

    >>> encode_number(3), encode_number(64), encode_number(128)
    (b'\\x07', b'\\x81', b'\\x02\\x02')
    """
    if number < 128:
        return _SMALL[number]
    length = -(-number.bit_length() // 7)
    if length > 8:
        return b"\0" + number.to_bytes(8, "little")
    return (number << length | 1 << length - 1).to_bytes(length, "little")


def encode_numbers(numbers: Iterable[int]) -> bytes:
    """Numbers, one behind the other.

    >>> encode_numbers([3, 64, 128])
    b'\\x07\\x81\\x02\\x02'
    """
    found = bytearray()
    for number in numbers:
        if number < 128:
            found.append(number << 1 | 1)
        elif number < 16384:
            found.append(number << 2 & 255 | 2)
            found.append(number >> 6)
        else:
            found += encode_number(number)
    return bytes(found)


def _strings(data: bytes, position: int) -> list[str]:
    """The strings of a module; their lengths stand before them, last one first."""
    count, position = number_at(data, position)
    lengths = []
    for _ in range(count):
        length = data[position] >> 1
        if data[position] & 1:
            position += 1
        else:
            length, position = number_at(data, position)
        lengths.append(length)
    lengths.reverse()
    found = []
    for length in lengths:
        found.append(data[position : position + length - 1].decode("utf-8", "surrogateescape"))
        position += length
    return found


def _dialects(data: bytes, position: int, strings: list[str]) -> tuple[list[str], int]:
    """The names of the dialects, and where the names of the ops start."""
    count, position = number_at(data, position)
    dialects = []
    for _ in range(count):
        name, position = number_at(data, position)
        dialects.append(strings[name >> 1])
        if name & 1:
            _, _, position = section_at(data, position)
    return dialects, position


def _op_names(data: bytes, position: int, strings: list[str], dialects: list[str]) -> tuple[list[str], list[bool]]:
    """The names of the ops, which stand dialect by dialect, and whether their dialects are loaded."""
    left, position = number_at(data, position)
    names: list[str] = []
    is_registered: list[bool] = []
    while len(names) < left:
        dialect, position = number_at(data, position)
        count, position = number_at(data, position)
        for _ in range(count):
            name, position = number_at(data, position)
            full_name = f"{dialects[dialect]}.{strings[name >> 1]}".removesuffix(".")  # an op without a dialect
            if not is_plain(full_name):
                raise InvalidModuleError(
                    "reading a module", got=f"an op with the name {quote(full_name)}", needed="names in UTF-8"
                )
            names.append(full_name)
            is_registered.append(bool(name & 1))
    return names, is_registered


def has_lost_range(text: str | bytes) -> bool:
    """Whether the text of a module or location has a location that bytecode does not keep.

    Of a range within one line MLIR keeps only the line, if it starts at column 0.

    >>> has_lost_range('"model.py":8:0 to :5'), has_lost_range('"model.py":8:1 to :5')
    (True, False)
    """
    return b":0 to :" in text if isinstance(text, bytes) else ":0 to :" in text
