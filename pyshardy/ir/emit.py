"""From nodes to the bytecode of a module: one loop over all ops, which MLIR then parses in one call.

An op that is as it was read keeps the numbers that its name, attributes and location have in the bytecode it was read
from (`Kind`); what is new is appended to the tables of that bytecode as text.
"""

from __future__ import annotations

from typing import Any

from pyshardy.ir.attrs import ARG_CODECS, LISTS, AttrTable, Codec, string_of
from pyshardy.ir.bytecode import (
    HAS_ATTRS,
    HAS_OPERANDS,
    HAS_PROPERTIES,
    HAS_REGIONS,
    HAS_RESULTS,
    HAS_SUCCESSORS,
    RESOURCE_OFFSETS,
    encode_number,
    has_lost_range,
    number_at,
)
from pyshardy.ir.nodes import Block, Op, Region, Value, ValueType
from pyshardy.ir.source import Kind, Place, Source
from pyshardy.ir.tables import UNKNOWN, CannotEmitError, Tables


def emit_module(root: Op, table: AttrTable) -> bytes:
    """The bytecode of the module that an op and all it holds make up.

    Args:
        root: The module op.
        table: Converts attributes and types; its context must be entered.

    Raises:
        CannotEmitError: The module was not read, holds resources, or values that are used before their definition.
    """
    source = root.source
    if source is None or table.loses_locations or len(source.code.content(RESOURCE_OFFSETS)) > 1:
        raise CannotEmitError
    emitter = _Emitter(source, table)
    emitter.out += encode_number(1 << 1)  # a block of one op
    top = Block()
    top.first = root
    emitter.emit_ops(top, 0)
    return emitter.tables.module(bytes(emitter.out))


class _Emitter:
    """Writes ops, of which most have the numbers they were read with.

    Attributes:
        out: What is written.
        scope: The values by number, as far as they can be seen and are defined.
        coded: Kinds of ops, by name, names of the attributes, and identities of their values.
        shared: The last kind of ops that share their attributes, by the identity of the attributes.
        plain: Numbers of the properties of ops without discardable attributes, by the same as `coded`.
        dictionaries: Numbers of dictionaries of discardable attributes, by names and identities of the values.
        values: Numbers of attributes, by the identities of the attribute and of what writes it.
    """

    def __init__(self, source: Source, table: AttrTable) -> None:
        self.source = source
        self.table = table
        self.tables = Tables(source.code)
        self.out = bytearray()
        self.scope: list[Value | None] = []
        self.types = {type: encode_number(number) for number, type in source.types.items()}
        self.args: dict[tuple[ValueType, int], bytes] = {}
        self.unknown = source.arg_places.get(-1)
        self.locations = {id(place): number for number, place in source.arg_places.items() if number >= 0}
        self.coded: dict[tuple[Any, ...], Kind] = {}
        self.plain: dict[tuple[Any, ...], int] = {}
        self.shared: dict[int, Kind] = {}
        self.dictionaries: dict[tuple[Any, ...], int] = {}
        self.values: dict[tuple[int, int], int] = {}
        for kind in dict.fromkeys(source.kinds):
            self.coded[_content(kind.name, kind.attrs)] = kind
            if kind.attributes < 0:
                self.plain[_content(kind.name, kind.attrs)] = kind.properties

    def emit_ops(self, block: Block, defined: int) -> int:
        """Write the ops of a block; `defined` is the number of the next value, which is returned for what follows."""
        out, scope, types, source = self.out, self.scope, self.types, self.source
        kinds, locations = source.kinds, source.locations
        limit = len(scope)  # the compiled core checks no index
        op = block.first
        while op is not None:
            results, operands = op.results, op.operands
            if op.source is source:
                number = op.number
                kind = kinds[number]
                if kind.attrs is not op.shared_attrs or kind.name != op.name:
                    kind = self.kind_of(op)
                number = locations[number] if op._location is None else self.location(op)
            else:
                kind = self.kind_of(op)
                number = self.location(op)
            out += kind.head
            mask = kind.mask
            if results:
                mask |= HAS_RESULTS
            if operands:
                mask |= HAS_OPERANDS
            if op.regions:
                mask |= HAS_REGIONS
            if op.successors:
                mask |= HAS_SUCCESSORS
            out.append(mask)
            # Most numbers take one byte, two or three: only the others are worth a call.
            if number < 128:
                out.append(number << 1 | 1)
            elif number < 16384:
                out.append(number << 2 & 255 | 2)
                out.append(number >> 6)
            elif number < 2097152:
                out.append(number << 3 & 255 | 4)
                out.append(number >> 5 & 255)
                out.append(number >> 13)
            else:
                out += encode_number(number)
            out += kind.tail
            if results:
                number = len(results)
                if number == 1:
                    out.append(3)
                else:
                    out += encode_number(number)
                for value in results:
                    out += types.get(value.type) or self.new_type(value.type)
            if operands:
                number = len(operands)
                if number < 128:
                    out.append(number << 1 | 1)
                else:
                    out += encode_number(number)
                try:
                    for value in operands:
                        number = value.mark
                        if number >= limit or scope[number] is not value:
                            raise CannotEmitError
                        if number < 128:
                            out.append(number << 1 | 1)
                        elif number < 16384:
                            out.append(number << 2 & 255 | 2)
                            out.append(number >> 6)
                        elif number < 2097152:
                            out.append(number << 3 & 255 | 4)
                            out.append(number >> 5 & 255)
                            out.append(number >> 13)
                        else:
                            out += encode_number(number)
                except (AttributeError, TypeError):  # never numbered, which the compiled core knows as None
                    raise CannotEmitError from None
            for value in results:
                value.mark = defined
                scope[defined] = value
                defined += 1
            if op.successors:
                self.emit_successors(op)
            if op.regions:
                self.emit_regions(op)
            op = op.next
        return defined

    def emit_successors(self, op: Op) -> None:
        assert op.block is not None and op.block.region is not None
        blocks = op.block.region.blocks
        self.out += encode_number(len(op.successors))
        for successor in op.successors:
            if successor not in blocks:
                raise CannotEmitError
            self.out += encode_number(blocks.index(successor))

    def emit_regions(self, op: Op) -> None:
        """Write the regions of an op, all as if they saw the values around them."""
        self.out += encode_number(len(op.regions) << 1)
        for region in op.regions:
            self.emit_region(region)

    def emit_region(self, region: Region) -> None:
        out, scope = self.out, self.scope
        out += encode_number(len(region.blocks))
        if not region.blocks:
            return
        start = defined = len(scope)
        counts = []
        values = 0
        for block in region.blocks:
            values += len(block.args)
            count = 0
            op = block.first
            while op is not None:
                values += len(op.results)
                count += 1
                op = op.next
            counts.append(count)
        scope += [None] * values
        out += encode_number(values)
        for block, count in zip(region.blocks, counts):
            if block.args:
                out += encode_number(count << 1 | 1)
                self.emit_args(block, defined)
            else:
                out += encode_number(count << 1)
            defined = self.emit_ops(block, defined + len(block.args))
        del scope[start:]

    def emit_args(self, block: Block, defined: int) -> None:
        """Write the arguments of a block; the first one gets the number `defined`."""
        out, scope, known = self.out, self.scope, self.args
        out += encode_number(len(block.args))
        for value in block.args:
            out += known.get((value.type, id(value._location))) or self.new_arg(value)
            value.mark = defined
            scope[defined] = value
            defined += 1
        out.append(0)  # the uses are in the order of the ops

    def new_arg(self, value: Value) -> bytes:
        """Type and location of an argument, which others may have in common with it."""
        place = value.place
        type, _ = number_at(self.types.get(value.type) or self.new_type(value.type), 0)
        number = self.locations.get(id(place))
        if number is None:
            number = -1 if place is None or place is self.unknown else self.new_location(value.location)
        found = encode_number(type << 1) if number < 0 else encode_number(type << 1 | 1) + encode_number(number)
        self.args[value.type, id(value.place)] = found
        return found

    def location(self, op: Op) -> int:
        """The number of the location of an op that is not the one it was read with."""
        found = op._location
        if type(found) is Place and found.source is self.source:
            return self.source.locations[found.number]
        number = None if found is None else self.locations.get(id(found))
        if number is None:
            location = op.location
            number = self.new_location(location)
            if found is location:  # the op keeps it, so that no other object gets its identity
                self.locations[id(location)] = number
        return number

    def new_location(self, location: Any) -> int:
        text = UNKNOWN if location is None else str(location)
        if has_lost_range(text):
            raise CannotEmitError
        return self.tables.location(text)

    def new_type(self, type: ValueType) -> bytes:
        found = self.types[type] = encode_number(self.tables.type(str(type.mlir)))
        return found

    def kind_of(self, op: Op) -> Kind:
        """The kind of an op by its name and attributes."""
        name, attrs = op.name, op.shared_attrs
        if not op.owns_attrs:
            found = self.shared.get(id(attrs))
            if found is not None and found.name == name:
                return found
        found = self.coded.get(_content(name, attrs))
        if found is None:
            found = self.new_kind(op)
        if not op.owns_attrs:
            self.shared[id(attrs)] = found
        return found

    def new_kind(self, op: Op) -> Kind:
        """The kind of an op with attributes that were not seen so far."""
        name, attrs = op.name, op.shared_attrs
        inherent = {attribute: value for attribute, value in attrs.items() if "." not in attribute}
        properties = self.plain.get(_content(name, inherent))
        mask, tail, attributes = 0, b"", -1
        if properties is None:
            properties = -1
            if attrs:
                attributes = self.dictionary(name, attrs)
        elif len(attrs) > len(inherent):
            attributes = self.discardable(name, {other: attrs[other] for other in attrs if other not in inherent})
        if attributes >= 0:
            mask |= HAS_ATTRS
            tail += encode_number(attributes)
        if properties >= 0:
            mask |= HAS_PROPERTIES
            tail += encode_number(properties)
        found = Kind(name, attrs, encode_number(self.tables.name(name)), mask, tail, attributes, properties)
        if name != "func.func":
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
            CannotEmitError: Its text does not tell all.
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
            raise CannotEmitError
        return self.tables.attr(text)


def _content(name: str, attrs: dict[str, Any]) -> tuple[Any, ...]:
    """Name and attributes of an op, the values by their identities."""
    found: list[Any] = [name, *attrs]
    for value in attrs.values():
        found.append(id(value))
    return tuple(found)
