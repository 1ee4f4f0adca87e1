# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""From MLIR to nodes: one walk over the bytecode of a module; every attribute and type is asked for once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir

from pyshardy.errors import InvalidModuleError
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.bytecode import (
    HAS_ATTRS,
    HAS_OPERANDS,
    HAS_PROPERTIES,
    HAS_REGIONS,
    HAS_RESULTS,
    HAS_SUCCESSORS,
    HAS_USE_ORDERS,
    IR,
    Bytecode,
    bytecode_of,
    encode_number,
    number_at,
    section_at,
)
from pyshardy.ir.diagnostics import Diagnostic, Severity, format_location
from pyshardy.ir.nodes import Block, Op, Region, Value, ValueType, flat_uses
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.ir.source import ArgPlace, Kind, Source
from pyshardy.ir.strings import named_attributes

SHORTEST_OP = 3
"""No op takes fewer bytes: its name, its mask and its location."""
FEW = 4
"""So many values take less time to join one by one to a tuple than by way of a list."""


def read_module(module: ir.Module, table: AttrTable) -> Op:
    """The `builtin.module` op of an MLIR module with everything in it; the module is not changed.

    Args:
        module: The MLIR module; its context must be entered.
        table: Converts attributes and types; one per context.

    Raises:
        InvalidModuleError: An op of an unknown dialect that has properties, which the bindings do not hand out.
    """
    with pause_gc():
        code = bytecode_of(module)
        source = Source(module, code)
        root = _Reader(code, source, table).read()
        source.resize(len(source.kinds))  # now that the reader does not look into it any more
        source.is_intact = True
        return root


_UseOrder = tuple[Value, bool, list[int]]
"""A value, whether only the uses that moved are listed, and where the uses stand (see `_restore_use_order`)."""


class _Reader:
    """Walks through bytecode and MLIR ops side by side: structure from the one, content from the others.

    Attributes:
        position: Where in the bytecode the next block or region starts.
        number: The number of the next op.
        scope: The values by number, as far as they can be seen; None for those not read yet.
        defined: How many of them the regions that are being read have used up.
    """

    def __init__(self, code: Bytecode, source: Source, table: AttrTable) -> None:
        self.data = code.data
        self.names = code.names
        self.is_registered = code.is_registered
        self.source = source
        self.mlir = source.mlir
        self.table = table
        table.has_odd_strings |= code.has_odd_strings
        self.position = code.start
        self.number = 0
        self.scope: list[Value | None] = []
        self.next_value = 0
        self.kinds: dict[tuple[int, int, int], Kind] = {}
        self.latest: list[Kind | None] = [None] * len(code.names)
        self.types = source.types
        source.resize(len(code.content(IR)) // SHORTEST_OP + 1)  # the compiled core appends slowly, and checks no index
        self.locations, self.blocks, self.places = source.locations, source.blocks, source.places
        self.arg_places = source.arg_places
        self.use_orders: list[_UseOrder] = []

    def read(self) -> Op:
        """The module op."""
        top = Block()
        self.read_ops(top, -1, self.next_number() >> 1, [])
        self.source.uses_in_order &= not self.use_orders
        for value, by_pairs, order in self.use_orders:
            _restore_use_order(value, by_pairs, order)
        assert top.first is not None
        return top.first.detach()

    def next_number(self) -> int:
        found, self.position = number_at(self.data, self.position)
        return found

    def read_ops(self, block: Block, home: int, count: int, blocks: list[Block]) -> None:
        """Read ops into a block with the number `home`; `blocks` are those of its region."""
        data, names, scope, types = self.data, self.names, self.scope, self.types
        known, latest, origin = self.kinds, self.latest, self.source
        kinds, locations, homes, places = origin.kinds, self.locations, self.blocks, self.places
        position = self.position
        last: Op | None = None
        many: list[Value] = []
        first_value = _NONE
        for place in range(count):
            # Most numbers take one byte, two or three, as the lowest bits say: only the others are worth a call.
            name = data[position] >> 1
            if data[position] & 1:
                position += 1
            else:
                name, position = number_at(data, position)
            mask = data[position]
            position += 1
            first = data[position]
            if first & 1:
                number = first >> 1
                position += 1
            elif first & 2:
                number = (first | data[position + 1] << 8) >> 2
                position += 2
            elif first & 4:
                number = (first | data[position + 1] << 8 | data[position + 2] << 16) >> 3
                position += 3
            else:
                number, position = number_at(data, position)
            locations[self.number] = number
            homes[self.number] = home
            places[self.number] = place
            attributes = properties = -1
            if mask & HAS_ATTRS:
                first = data[position]
                if first & 1:
                    attributes = first >> 1
                    position += 1
                else:
                    attributes, position = number_at(data, position)
            if mask & HAS_PROPERTIES:
                first = data[position]
                if first & 1:
                    properties = first >> 1
                    position += 1
                else:
                    properties, position = number_at(data, position)
            kind = latest[name]
            if kind is None or kind.attributes != attributes or kind.properties != properties:
                kind = known.get((name, attributes, properties))
                if kind is None:
                    kind = self.new_kind(name, attributes, properties, home, place)
                latest[name] = kind if kind.name else None
            kinds.append(kind)
            # Here ops and values are made without a call of their constructor, which would copy and count again.
            op = Op.__new__(Op)
            results: tuple[Value, ...] = ()
            if mask & HAS_RESULTS:
                uses = data[position] >> 1
                if data[position] & 1:
                    position += 1
                else:
                    uses, position = number_at(data, position)
                for index in range(uses):
                    number = data[position] >> 1
                    if data[position] & 1:
                        position += 1
                    else:
                        number, position = number_at(data, position)
                    type = types.get(number)
                    if type is None:
                        type = types[number] = self.table.type(self.mlir.op_at(home, place).results[index].type)
                    value = Value.__new__(Value)
                    value.type = type
                    value.owner = op
                    value.index = index
                    value.flat_uses = _NO_USES
                    value._location = None
                    if uses <= FEW:
                        results = results + (value,)  # noqa: RUF005 (faster)
                    else:
                        many.append(value)
                if many:
                    results = tuple(many)
                    many = []
            operands: tuple[Value, ...] = ()
            if mask & HAS_OPERANDS:
                uses = data[position] >> 1
                if data[position] & 1:
                    position += 1
                else:
                    uses, position = number_at(data, position)
                for index in range(uses):
                    first = data[position]
                    if first & 1:
                        number = first >> 1
                        position += 1
                    elif first & 2:
                        number = (first | data[position + 1] << 8) >> 2
                        position += 2
                    elif first & 4:
                        number = (first | data[position + 1] << 8 | data[position + 2] << 16) >> 3
                        position += 3
                    else:
                        number, position = number_at(data, position)
                    known_value = scope[number]
                    value = self.early_value(number) if known_value is None else known_value
                    if value.flat_uses is _NO_USES:
                        value.flat_uses = (op, index)
                    else:
                        value.add_use(op, index)
                    if uses == 2:
                        if index:
                            operands = first_value, value
                        else:
                            first_value = value
                    elif uses <= FEW:
                        operands = operands + (value,)  # noqa: RUF005 (faster)
                    else:
                        many.append(value)
                if many:
                    operands = tuple(many)
                    many = []
            op.name = names[name]
            op.operands = operands
            op.results = results
            op.shared_attrs = kind.attrs
            op.owns_attrs = not kind.name
            op.regions = op.successors = ()
            op.source = origin
            op.number = self.number
            op._location = op.next = None
            op.block = block
            op.prev = last
            op.order = place
            if last is None:
                block.first = op
            else:
                last.next = op
            block.last = last = op
            self.number += 1
            if mask & HAS_SUCCESSORS:
                successors, position = number_at(data, position)
                found = []
                for _ in range(successors):
                    number, position = number_at(data, position)
                    found.append(blocks[number])
                op.successors = tuple(found)
            if results:
                if len(results) == 1 and scope[self.next_value] is None:
                    scope[self.next_value] = results[0]
                    self.next_value += 1
                else:
                    self.define(results)
            if mask & HAS_USE_ORDERS:
                self.position = position
                self.read_use_orders(results)
                position = self.position
            if mask & HAS_REGIONS:
                self.position = position
                self.read_regions(op, home)
                position = self.position
        block._ordered = True
        self.position = position

    def new_kind(self, name: int, attributes: int, properties: int, home: int, place: int) -> Kind:
        """What all ops share that have the same numbers for their name and their attributes; one is at `place`."""
        full_name, mask, tail = self.names[name], 0, b""
        attrs: dict[str, Any] = {}
        if attributes >= 0 or properties >= 0:
            source = self.mlir.op_at(home, place)
            if properties >= 0 and not self.is_registered[name]:
                _refuse_properties(source)
            attrs = self.table.decode_attrs(full_name, named_attributes(source.attributes))
        if full_name == "func.func":  # its attributes hold lists, which no two functions may share
            return Kind("", attrs, b"", 0, b"", -1, -1)
        if attributes >= 0:
            mask |= HAS_ATTRS
            tail += encode_number(attributes)
        if properties >= 0:
            mask |= HAS_PROPERTIES
            tail += encode_number(properties)
        found = Kind(full_name, attrs, encode_number(name), mask, tail, attributes, properties)
        self.kinds[name, attributes, properties] = found
        return found

    def define(self, values: Sequence[Value]) -> None:
        """Give values the next numbers."""
        scope, number = self.scope, self.next_value
        for value in values:
            early = scope[number]
            if early is not None:
                value.flat_uses = early.flat_uses
                for op, index in value.uses:
                    op._put_operand(index, value)
            scope[number] = value
            number += 1
        self.next_value = number

    def early_value(self, number: int) -> Value:
        """What stands for a value until its definition is read: a block may come before that of its operands."""
        self.source.uses_in_order = False
        found = self.scope[number] = Value(_UNKNOWN, Block(), 0)
        return found

    def read_regions(self, op: Op, home: int) -> None:
        """Read the regions of an op in block `home`; those that see nothing from outside have numbers of their own."""
        count = self.next_number()
        is_isolated = count & 1
        scope, next_value = self.scope, self.next_value
        if is_isolated:
            self.scope, self.next_value = [], 0
            _, self.position, _ = section_at(self.data, self.position)
        op.regions = tuple([Region(op) for _ in range(count >> 1)])
        for number, region in enumerate(op.regions):
            self.read_region(region, home, number)
        self.scope, self.next_value = scope, next_value

    def read_region(self, region: Region, home: int, number: int) -> None:
        """Read the blocks of a region, the one with this number in its op."""
        block_count = self.next_number()
        if not block_count:
            return
        first = self.next_value
        end = len(self.scope)
        self.scope += [None] * self.next_number()
        self.next_value = end
        blocks = [region.add_block() for _ in range(block_count)]
        for index, block in enumerate(blocks):
            count = self.next_number()
            inside = self.mlir.add_block(home, region.op.order, number, index, count >> 1)
            if count & 1:
                self.read_args(block, inside)
            self.read_ops(block, inside, count >> 1, blocks)
        del self.scope[end:]
        self.next_value = first

    def read_args(self, block: Block, home: int) -> None:
        """Read the arguments of a block with the number `home`."""
        args = block.args
        for index in range(self.next_number()):
            type_and_flag = self.next_number()
            location = self.next_number() if type_and_flag & 1 else -1
            type = self.types.get(type_and_flag >> 1)
            if type is None:
                type = self.types[type_and_flag >> 1] = self.table.type(self.mlir.block(home).arguments[index].type)
            place = self.arg_places.get(location)
            if place is None:
                place = self.arg_places[location] = ArgPlace(self.source, home, index)
            value = Value.__new__(Value)
            value.type = type
            value.owner = block
            value.index = index
            value.flat_uses = _NO_USES
            value._location = place
            args.append(value)
        self.define(args)
        has_use_orders = self.data[self.position]
        self.position += 1
        if has_use_orders:
            self.read_use_orders(block.args)

    def read_use_orders(self, values: Sequence[Value]) -> None:
        """Note how the uses of some values are ordered where it is not as they are read."""
        for _ in range(self.next_number() if len(values) > 1 else 1):
            value = values[self.next_number() if len(values) > 1 else 0]
            count = self.next_number()
            self.use_orders.append((value, bool(count & 1), [self.next_number() for _ in range(count >> 1)]))


_NO_USES = ()
_UNKNOWN = ValueType(None, None, "unknown", False, False)
_NONE = Value(_UNKNOWN, Block(), 0)


def _restore_use_order(value: Value, by_pairs: bool, order: list[int]) -> None:
    """Put the uses of a value into MLIR's order.

    `order` lists the place in MLIR's list of every use, the one read last first, or pairs of place and use for those
    that stand elsewhere.
    """
    uses = list(reversed(value.uses))
    at = list(uses)
    pairs = zip(order[::2], order[1::2]) if by_pairs else zip(order, range(len(uses)))
    for place, number in pairs:
        at[place] = uses[number]
    value.flat_uses = flat_uses(at[::-1])


def _refuse_properties(source: Any) -> None:
    """Refuse an op whose properties would get lost: the bindings do not hand out those of unknown dialects."""
    needed = "attributes alone: {...} instead of <{...}>"
    error = InvalidModuleError(
        "reading a module",
        where=format_location(source.location),
        got=f"properties on '{source.name}', an op of an unknown dialect",
        needed=needed,
    )
    message = f"'{source.name}' op of an unknown dialect has properties, needed {needed}"
    error.diagnostics = (Diagnostic(Severity.ERROR, message, source.location),)
    raise error
