"""The frame of a module in bytecode: version, producer, sections, and the names of dialects and ops.

Source: docs/bytecode.md#sections
"""

from __future__ import annotations

from typing import NamedTuple

from pyshardy.ir.bytecode.numbers import NumberReader

VERSION = 6
"""The version of the format read and written here; jaxlib 0.10 and all later ones know it."""
MAGIC = b"ML\xefR" + bytes([VERSION << 1 | 1])
STRINGS, DIALECTS, ATTRS_AND_TYPES, OFFSETS, IR, RESOURCES, RESOURCE_OFFSETS, DIALECT_VERSIONS, PROPERTIES = range(9)
_HAS_ALIGNMENT = 128


class BytecodeError(ValueError):
    """The data is not MLIR bytecode of the version that this package reads."""


class Bytecode(NamedTuple):
    """A module in bytecode.

    Attributes:
        data: All bytes.
        sections: Per kind of section, the start and end of its content; in the order of the data.
        dialects: The names of the dialects, by number.
        names: The full names of its ops, by number. Bytes that are not UTF-8 are lone surrogates, as in file names.
        is_registered: Per name, whether the process that wrote the data had loaded the dialect.
        has_odd_strings: Whether any string is not UTF-8.
    """

    data: bytes
    sections: dict[int, tuple[int, int]]
    dialects: list[str]
    names: list[str]
    is_registered: list[bool]
    has_odd_strings: bool

    def content(self, section: int) -> bytes:
        """The content of a section."""
        start, end = self.sections[section]
        return self.data[start:end]


def parse_bytecode(data: bytes) -> Bytecode:
    """The frame of a module in bytecode, and the names of its dialects and ops.

    Raises:
        BytecodeError: The data is something else, of another version, or cut off.
    """
    if not data.startswith(MAGIC):
        raise BytecodeError(f"no MLIR bytecode of version {VERSION}: it starts with {data[: len(MAGIC)]!r}")
    try:
        return _parse(data)
    except IndexError as error:
        raise BytecodeError("the bytecode is cut off, or a section is missing") from error


def _parse(data: bytes) -> Bytecode:
    sections: dict[int, tuple[int, int]] = {}
    position = end_of_producer(data)
    while position < len(data):
        section, start, position = section_at(data, position)
        sections[section] = start, position
    if position > len(data) or not sections.keys() >= {STRINGS, DIALECTS, ATTRS_AND_TYPES, OFFSETS, IR}:
        raise IndexError("the last section")
    encoded = _strings(data, sections[STRINGS][0])
    strings = [string.decode("utf-8", "surrogateescape") for string in encoded]
    reader = NumberReader(data, sections[DIALECTS][0])
    dialects = [strings[name] for name in dialect_names(reader)]
    names, is_registered = _op_names(reader, strings, dialects)
    has_odd_strings = not all(map(_is_utf8, encoded))
    return Bytecode(data, sections, dialects, names, is_registered, has_odd_strings)


def end_of_producer(data: bytes) -> int:
    """The start of the first section: after the name of the producer, which a zero byte ends."""
    end = data.find(0, len(MAGIC))
    if end < 0:
        raise IndexError("the name of the producer")
    return end + 1


def section_at(data: bytes, position: int) -> tuple[int, int, int]:
    """The kind of the section at a position, and the start and end of its content."""
    reader = NumberReader(data, position)
    kind = reader.byte()
    length = reader.next()
    if kind & _HAS_ALIGNMENT:
        alignment = reader.next()
        reader.position += -reader.position % alignment
    return kind & ~_HAS_ALIGNMENT, reader.position, reader.position + length


def _is_utf8(string: bytes) -> bool:
    try:
        string.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _strings(data: bytes, position: int) -> list[bytes]:
    """The strings of a module. Their lengths precede them, last one first, and include the zero byte at the end."""
    reader = NumberReader(data, position)
    lengths = [reader.next() for _ in range(reader.next())]
    position = reader.position
    found = []
    for length in reversed(lengths):
        found.append(data[position : position + length - 1])
        position += length
    return found


def dialect_names(reader: NumberReader) -> list[int]:
    """The string numbers of the dialects' names; the reader then stands at the start of the op names."""
    found = []
    for _ in range(reader.next()):
        name = reader.next()
        found.append(name >> 1)
        if name & 1:  # a section with the version of the dialect
            _, _, reader.position = section_at(reader.data, reader.position)
    return found


def _op_names(reader: NumberReader, strings: list[str], dialects: list[str]) -> tuple[list[str], list[bool]]:
    """The names of the ops, dialect by dialect, and whether their dialects are loaded."""
    count = reader.next()
    names: list[str] = []
    is_registered: list[bool] = []
    while len(names) < count:
        dialect = dialects[reader.next()]
        for _ in range(reader.next()):
            name = reader.next()
            names.append(f"{dialect}.{strings[name >> 1]}".removesuffix("."))  # an op without a dialect
            is_registered.append(bool(name & 1))
    return names, is_registered
