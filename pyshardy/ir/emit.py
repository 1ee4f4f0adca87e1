"""From nodes to the bytecode of a module, in one loop over all ops; MLIR then parses it in one call.

An op that has not changed since it was read keeps the numbers of its name, attributes and location in the bytecode
(`SourceKind`). New items are appended as text to the tables of that bytecode.
"""

from __future__ import annotations

from typing import Any

from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.blocks import Block, Region, Value
from pyshardy.ir.bytecode.locations import has_lost_range
from pyshardy.ir.bytecode.ops import ABSENT, HAS_OPERANDS, HAS_REGIONS, HAS_RESULTS, HAS_SUCCESSORS, OpWriter
from pyshardy.ir.bytecode.sections import RESOURCE_OFFSETS
from pyshardy.ir.bytecode.tables import UNKNOWN_LOCATION, AmbiguousLocationError, BytecodeTables
from pyshardy.ir.codecs import ARG_CODECS, LISTS, Codec
from pyshardy.ir.op import Op
from pyshardy.ir.source import OpPlace, Source, SourceKind
from pyshardy.ir.strings import string_of
from pyshardy.ir.value_type import ValueType


class CannotEmitError(Exception):
    """Something must be written op by op; the message says why."""


def emit_module(root: Op, table: AttrTable) -> bytes:
    """The bytecode of the module that consists of an op and all ops inside it.

    Args:
        root: The module op.
        table: Converts attributes and types; its context must be entered.

    Raises:
        CannotEmitError: The module was not read, holds resources, or uses values before their definition.
    """
    source = root.source
    if source is None:
        raise CannotEmitError("the module was made, not read")
    if table.loses_locations:
        raise CannotEmitError("a location is a range that bytecode does not keep")
    if len(source.code.content(RESOURCE_OFFSETS)) > 1:
        raise CannotEmitError("it has resources, which belong to the module that was read")
    emitter = _Emitter(source, table)
    emitter.writer.block_header(1, 0)
    top = Block()
    top.first = root
    emitter.emit_ops(top, 0)
    try:
        return emitter.tables.module(bytes(emitter.writer.out))
    except AmbiguousLocationError as error:
        raise CannotEmitError(str(error)) from error


class _Emitter:
    """Writes ops; most of them keep the numbers that they were read with.

    It looks up attributes, their values and locations by identity; so it keeps the nodes and the kinds of ops alive.

    Attributes:
        writer: The writer of the ops.
        numbers: The numbers of the values that are defined and visible.
        size: The number of values in the regions being written, including values not defined yet.
        coded: Kinds of ops, by name, names of the attributes, and identities of their values.
        shared: Kinds of ops, by name and by the identity of their attributes.
        plain: Numbers of the properties of ops without discardable attributes, with the keys of `coded`.
        dictionaries: Numbers of dictionaries of discardable attributes, by names and identities of the values.
        values: Numbers of attributes, by the identities of the attribute and of its codec.
    """

    def __init__(self, source: Source, table: AttrTable) -> None:
        self.source = source
        self.table = table
        self.tables = BytecodeTables(source.code)
        self.writer = OpWriter()
        self.numbers: dict[Value, int] = {}
        self.size = 0
        self.types = {type: number for number, type in source.types.items()}
        self.unknown = source.arg_places.get(ABSENT)
        self.locations = {id(place): number for number, place in source.arg_places.items() if number >= 0}
        self.coded: dict[tuple[Any, ...], SourceKind] = {}
        self.plain: dict[tuple[Any, ...], int] = {}
        self.shared: dict[str, dict[int, SourceKind]] = {}
        self.dictionaries: dict[tuple[Any, ...], int] = {}
        self.values: dict[tuple[int, int], int] = {}
        for kind in dict.fromkeys(source.kinds):
            self.coded[_content(kind.op_name, kind.attrs)] = kind
            if kind.attributes < 0:
                self.plain[_content(kind.op_name, kind.attrs)] = kind.properties

    def emit_ops(self, block: Block, defined: int) -> int:
        """Write the ops of a block; `defined` is the number of the next value. Return the next number after it."""
        writer, numbers, source = self.writer, self.numbers, self.source
        kinds, locations = source.kinds, source.locations
        op = block.first
        while op is not None:
            results, operands = op.results, op.operands
            if op.source is source:
                number = op.number
                kind = kinds[number]
                if kind.attrs is not op.attrs or kind.op_name != op.name:
                    kind = self.kind_of(op)
                location = locations[number] if op._location is None else self.location(op)
            else:
                kind = self.kind_of(op)
                location = self.location(op)
            mask = 0
            if results:
                mask |= HAS_RESULTS
            if operands:
                mask |= HAS_OPERANDS
            if op.regions:
                mask |= HAS_REGIONS
            if op.successors:
                mask |= HAS_SUCCESSORS
            writer.write_op(kind.name, mask, location, kind.attributes, kind.properties)
            self.emit_values(op)
            for value in results:
                numbers[value] = defined
                defined += 1
            if op.successors:
                self.emit_successors(op)
            if op.regions:
                self.emit_regions(op)
            op = op.next
        return defined

    def emit_values(self, op: Op) -> None:
        """Write the types of the results of an op, and the numbers of its operands."""
        writer, numbers, types, results, operands = self.writer, self.numbers, self.types, op.results, op.operands
        if results:
            writer.put(len(results))
            for value in results:
                known = types.get(value.type)
                writer.put(self.new_type(value.type) if known is None else known)
        if operands:
            writer.put(len(operands))
            for value in operands:
                known = numbers.get(value)
                if known is None:
                    raise CannotEmitError(f"{op.name} uses a value that it cannot see, or not yet")
                writer.put(known)

    def emit_successors(self, op: Op) -> None:
        assert op.block is not None and op.block.region is not None
        blocks = op.block.region.blocks
        self.writer.put(len(op.successors))
        for successor in op.successors:
            if successor not in blocks:
                raise CannotEmitError(f"{op.name} branches out of its region")
            self.writer.put(blocks.index(successor))

    def emit_regions(self, op: Op) -> None:
        """Write the regions of an op, none of them isolated from the values around it."""
        self.writer.region_header(len(op.regions))
        for region in op.regions:
            self.emit_region(region)

    def emit_region(self, region: Region) -> None:
        """Write the blocks of a region; its values continue the numbering of the values visible there."""
        writer, numbers = self.writer, self.numbers
        writer.put(len(region.blocks))
        if not region.blocks:
            return
        start = defined = self.size
        values = 0
        counts = []
        for block in region.blocks:
            values += len(block.args)
            count = 0
            op = block.first
            while op is not None:
                values += len(op.results)
                count += 1
                op = op.next
            counts.append(count)
        writer.put(values)
        self.size += values
        for block, count in zip(region.blocks, counts):
            writer.block_header(count, len(block.args))
            if block.args:
                self.emit_args(block, defined)
            defined = self.emit_ops(block, defined + len(block.args))
        for _ in range(values):
            numbers.popitem()  # the values of this region, added last
        self.size = start

    def emit_args(self, block: Block, defined: int) -> None:
        """Write the arguments of a block; the first one gets the number `defined`."""
        for value in block.args:
            type = self.types.get(value.type)
            self.writer.arg(self.new_type(value.type) if type is None else type, self.arg_location(value))
            self.numbers[value] = defined
            defined += 1
        self.writer.end_args()

    def arg_location(self, value: Value) -> int:
        """The number of the location of an argument, -1 for an unknown one."""
        place = value.place
        number = self.locations.get(id(place))
        if number is not None:
            return number
        return ABSENT if place is None or place is self.unknown else self.new_location(value.location)

    def location(self, op: Op) -> int:
        """The number of the location of an op whose location differs from the one it was read with."""
        found = op._location
        if type(found) is OpPlace and found.source is self.source:
            return self.source.locations[found.number]
        number = None if found is None else self.locations.get(id(found))
        if number is None:
            location = op.location
            number = self.new_location(location)
            if found is op._location:  # the op keeps it alive, so no other object gets its identity
                self.locations[id(found)] = number
        return number

    def new_location(self, location: Any) -> int:
        text = UNKNOWN_LOCATION if location is None else str(location)
        if has_lost_range(text):
            raise CannotEmitError(f"{text} is a range that bytecode does not keep")
        return self.tables.location(text)

    def new_type(self, type: ValueType) -> int:
        found = self.types[type] = self.tables.type(str(type.mlir))
        return found

    def kind_of(self, op: Op) -> SourceKind:
        """The kind of an op, from its name and attributes."""
        name, attrs = op.name, op.attrs
        shared = self.shared.get(name)
        if shared is None:
            shared = self.shared[name] = {}
        found = shared.get(id(attrs))
        if found is None:
            found = self.coded.get(_content(name, attrs))
            if found is None:
                found = self.new_kind(op)
            shared[id(attrs)] = found
        return found

    def new_kind(self, op: Op) -> SourceKind:
        """The kind of an op with new attributes."""
        name, attrs = op.name, op.attrs
        inherent = {attribute: value for attribute, value in attrs.items() if "." not in attribute}
        properties = self.plain.get(_content(name, inherent))
        attributes = ABSENT
        if properties is None:
            properties = ABSENT
            if attrs:
                attributes = self.dictionary(name, attrs)
        elif len(attrs) > len(inherent):
            attributes = self.discardable(name, {other: attrs[other] for other in attrs if other not in inherent})
        found = SourceKind(name, attrs, self.tables.name(name), attributes, properties)
        self.coded[_content(name, attrs)] = found
        return found

    def discardable(self, name: str, attrs: dict[str, Any]) -> int:
        """The number of a dictionary of discardable attributes, which ops of any name share."""
        key = _content("", attrs)
        found = self.dictionaries.get(key)
        if found is None:
            found = self.dictionaries[key] = self.dictionary(name, attrs)
        return found

    def dictionary(self, op_name: str, attrs: dict[str, Any]) -> int:
        """The number of the attributes of an op."""
        entries = []
        for name, value in attrs.items():
            if name in LISTS and op_name == "func.func":
                if not any(value):
                    continue
                number = self.tables.array([self.arg_dictionary(entry) for entry in value])
            else:
                number = self.value(self.table.codec(op_name, name), value)
            entries.append((self.tables.string(name), number))
        return self.tables.dictionary(entries)

    def arg_dictionary(self, attrs: dict[str, Any]) -> int:
        """The number of the attributes of an argument or of a result."""
        key = _content("func.func", attrs)
        found = self.dictionaries.get(key)
        if found is None:
            entries = [
                (self.tables.string(name), self.value(ARG_CODECS.get(name), value)) for name, value in attrs.items()
            ]
            found = self.dictionaries[key] = self.tables.dictionary(entries)
        return found

    def value(self, codec: Codec | None, value: Any) -> int:
        """The number of an attribute.

        Raises:
            CannotEmitError: Its text is incomplete.
        """
        key = id(codec), id(value)
        found = self.values.get(key)
        if found is None:
            string = string_of(value) if codec is None else None
            found = self.values[key] = self.new_value(codec, value) if string is None else self.tables.string(string)
        return found

    def new_value(self, codec: Codec | None, value: Any) -> int:
        text = self.table.text(codec, value)
        if "dense_resource" in text or "distinct[" in text:
            raise CannotEmitError(f"the text of {text[:100]} is incomplete")
        return self.tables.attr(text)


def _content(name: str, attrs: dict[str, Any]) -> tuple[Any, ...]:
    """Name and attributes of an op, the values by identity."""
    found: list[Any] = [name, *attrs]
    for value in attrs.values():
        found.append(id(value))
    return tuple(found)
