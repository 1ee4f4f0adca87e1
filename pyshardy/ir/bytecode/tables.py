"""The tables of a module in bytecode. They grow at their ends, so all numbers in them stay valid.

The ops of a module in bytecode refer to strings, names of ops, attributes and types by number. A module that is
written again keeps the tables of the module it was read from. New entries are appended: attributes and types as text,
which MLIR parses; strings as they are; arrays and dictionaries of attributes as the numbers of their entries.

Source: docs/bytecode.md#appending
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pyshardy.ir.bytecode.locations import LINE_AND_COLUMN, RANGE, line_as_place
from pyshardy.ir.bytecode.numbers import NumberReader, encode_numbers
from pyshardy.ir.bytecode.sections import (
    ATTRS_AND_TYPES,
    DIALECTS,
    IR,
    OFFSETS,
    STRINGS,
    Bytecode,
    BytecodeError,
    dialect_names,
    end_of_producer,
)

UNKNOWN_LOCATION = "loc(unknown)"


class AmbiguousLocationError(BytecodeError):
    """The text of a new location would match a location that is in the tables in two forms."""


class BytecodeTables:
    """The tables of some bytecode, and the entries appended to them.

    Args:
        code: The bytecode.
    """

    def __init__(self, code: Bytecode) -> None:
        self.code = code
        reader = NumberReader(code.data, code.sections[OFFSETS][0])
        self.attr_count, self.type_count = reader.next(), reader.next()
        self.first_offset = reader.position
        reader = NumberReader(code.data, code.sections[STRINGS][0])
        self.string_count = reader.next()
        self.first_length = reader.position
        self.dialects = {name: number for number, name in enumerate(code.dialects)}
        self.names = {name: number for number, name in enumerate(code.names)}
        self.strings: list[str] = []
        self.dialect_names: list[int] = []
        self.op_names: list[tuple[int, int]] = []
        self.attrs: dict[str | bytes, int] = {}  # `bytes` keys have MLIR's own encoding
        self.string_attrs: dict[str, int] = {}
        self.types: dict[str, int] = {}
        self.has_places = False

    def name(self, name: str) -> int:
        """The number of the name of an op."""
        found = self.names.get(name)
        if found is None:
            found = self.names[name] = len(self.names)
            dialect, _, rest = name.partition(".")
            self.op_names.append((self._dialect(dialect), self._string(rest)))
        return found

    def attr(self, text: str) -> int:
        """The number of an attribute given as text."""
        return self.attrs.setdefault(text, self.attr_count + len(self.attrs))

    def string(self, text: str) -> int:
        """The number of an attribute that is a string, such as a name in a dictionary."""
        found = self.string_attrs.get(text)
        if found is None:
            found = self.string_attrs[text] = self._encoded(_STRING, [self._string(text)])
        return found

    def array(self, attrs: Sequence[int]) -> int:
        """The number of an array of attributes, from their numbers."""
        return self._encoded(_ARRAY, [len(attrs), *attrs])

    def dictionary(self, attrs: Sequence[tuple[int, int]]) -> int:
        """The number of a dictionary of attributes, from the numbers of names, which are strings, and of values."""
        numbers = [len(attrs)]
        for entry in attrs:
            numbers += entry
        return self._encoded(_DICTIONARY, numbers)

    def _encoded(self, kind: int, numbers: list[int]) -> int:
        return self.attrs.setdefault(encode_numbers([kind, *numbers]), self.attr_count + len(self.attrs))

    def location(self, text: str) -> int:
        """The number of a location given as text, `loc(...)`."""
        self.has_places |= text != UNKNOWN_LOCATION
        return self.attr(text)

    def type(self, text: str) -> int:
        """The number of a type given as text."""
        return self.types.setdefault(text, self.type_count + len(self.types))

    def _dialect(self, name: str) -> int:
        found = self.dialects.get(name)
        if found is None:
            found = self.dialects[name] = len(self.dialects)
            self.dialect_names.append(self._string(name))
        return found

    def _string(self, text: str) -> int:
        self.strings.append(text)
        return self.string_count + len(self.strings) - 1

    def module(self, ops: bytes) -> bytes:
        """The bytecode of a module with these tables and with new ops."""
        code = self.code
        written = {STRINGS: self._string_section(), DIALECTS: self._dialect_section(), IR: ops}
        if self.attrs or self.types:
            written[ATTRS_AND_TYPES], written[OFFSETS] = self._attr_sections()
        parts = [code.data[: end_of_producer(code.data)]]
        for section in code.sections:
            content = written[section] if section in written else code.content(section)
            parts += bytes([section]), encode_numbers([len(content)]), content
        return b"".join(parts)

    def _string_section(self) -> bytes:
        """The strings; their lengths precede them, last one first."""
        data, (_, end) = self.code.data, self.code.sections[STRINGS]
        new = [text.encode("utf-8", "surrogateescape") + b"\0" for text in self.strings]
        lengths = encode_numbers([self.string_count + len(new), *map(len, reversed(new))])
        return b"".join([lengths, data[self.first_length : end], *new])

    def _dialect_section(self) -> bytes:
        """The names of the dialects and of the ops."""
        data, (start, end) = self.code.data, self.code.sections[DIALECTS]
        reader = NumberReader(data, start)
        reader.next()
        first, reader.position = reader.position, start
        dialect_names(reader)
        last = reader.position
        reader.next()
        new = [name << 1 for name in self.dialect_names]
        parts = [encode_numbers([len(self.dialects)]), data[first:last], encode_numbers([*new, len(self.names)])]
        parts.append(data[reader.position : end])
        for dialect, name in self.op_names:
            parts.append(encode_numbers([dialect, 1, name << 1 | 1]))
        return b"".join(parts)

    def _attr_sections(self) -> tuple[bytes, bytes]:
        """The attributes and types, and their lengths; all attributes precede the types."""
        data, (_, end) = self.code.data, self.code.sections[OFFSETS]
        given, position = self._given_attrs()
        attrs, types = _contents(self.attrs), _contents(self.types)
        contents = [given, *attrs, self.code.content(ATTRS_AND_TYPES)[len(given) :], *types]
        counts = encode_numbers([self.attr_count + len(attrs), self.type_count + len(types)])
        lengths = [counts, data[self.first_offset : position], self._lengths(self.attrs, attrs)]
        lengths += [data[position:end], self._lengths(self.types, types)]
        return b"".join(contents), b"".join(lengths)

    def _lengths(self, entries: Collection[str | bytes], contents: list[bytes]) -> bytes:
        """A group in the table of lengths, for the builtin dialect, which every module has."""
        if not entries:
            return b""
        lengths = [len(content) << 1 | isinstance(entry, bytes) for entry, content in zip(entries, contents)]
        return encode_numbers([self.dialects["builtin"], len(lengths), *lengths])

    def _given_attrs(self) -> tuple[bytes, int]:
        """The attributes that the module came with, and the end of their lengths.

        Raises:
            AmbiguousLocationError: The text of a new location may match two of them.
        """
        reader = NumberReader(self.code.data, self.first_offset)
        found = bytearray(self.code.content(ATTRS_AND_TYPES))
        left, end = self.attr_count, 0
        ranges: list[tuple[int, int]] = []
        known = set()
        while left:
            dialect = reader.next()
            has_locations = self.has_places and dialect == self.dialects["builtin"]
            count = reader.next()
            left -= count
            for _ in range(count):
                start = end
                length = reader.next()
                end += length >> 1
                if not has_locations or not length & 1:
                    continue
                if found[start] == _RANGE:
                    ranges.append((start, end))
                elif found[start] == _LINE_AND_COLUMN:
                    known.add(bytes(found[start:end]))
        for start, stop in ranges:
            place = line_as_place(bytes(found[start:stop]))
            if place in known:
                raise AmbiguousLocationError("a line of a file is in the module with and without column 0")
            if place is not None:
                found[start:stop] = place
        return bytes(found[:end]), reader.position


_ARRAY, _DICTIONARY, _STRING = 0, 1, 2
_RANGE, _LINE_AND_COLUMN = encode_numbers([RANGE])[0], encode_numbers([LINE_AND_COLUMN])[0]


def _contents(entries: Iterable[str | bytes]) -> list[bytes]:
    return [one if isinstance(one, bytes) else one.encode("utf-8", "surrogateescape") + b"\0" for one in entries]
