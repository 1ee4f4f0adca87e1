# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""From MLIR to nodes, in one walk over the bytecode of a module; every attribute and type is requested once."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from jaxlib.mlir import ir

from pyshardy.core.text import quote
from pyshardy.errors import InvalidModuleError
from pyshardy.ir.attributes import NO_ATTRS
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.blocks import Block, Region, Value, flat_uses
from pyshardy.ir.bytecode.ops import (
    HAS_OPERANDS,
    HAS_REGIONS,
    HAS_RESULTS,
    HAS_SUCCESSORS,
    HAS_USE_ORDERS,
    SHORTEST_OP,
    OpReader,
    UseOrder,
)
from pyshardy.ir.bytecode.sections import IR, VERSION, Bytecode, parse_bytecode
from pyshardy.ir.diagnostics import Diagnostic, Severity
from pyshardy.ir.locations import format_location
from pyshardy.ir.op import Op
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.ir.source import ArgPlace, Source, SourceKind
from pyshardy.ir.strings import is_utf8, named_attributes
from pyshardy.ir.value_type import ValueType


def read_module(module: ir.Module, table: AttrTable) -> Op:
    """The `builtin.module` op of an MLIR module with everything in it; the module does not change.

    Args:
        module: The MLIR module; its context must be entered.
        table: Converts attributes and types; one per context.

    Raises:
        InvalidModuleError: An op of an unknown dialect has properties, which the bindings do not provide, or a name is
            not UTF-8.
    """
    with pause_gc():
        code = bytecode_of(module)
        check_op_names(code.names)
        source = Source(module, code)
        root = _Reader(code, source, table).read()
        source.resize(len(source.kinds))  # the reader does not use it any more
        return root


def bytecode_of(module: Any) -> Bytecode:
    """The bytecode of an MLIR module: the only call of the bindings that returns a whole module."""
    stream = BytesIO()
    module.operation.write_bytecode(stream, VERSION)
    return parse_bytecode(stream.getvalue())


def check_op_names(names: list[str]) -> None:
    """Raise `InvalidModuleError` unless the names of the ops of a module are UTF-8, without NUL."""
    for name in names:
        if not is_utf8(name) or "\0" in name:
            raise InvalidModuleError(
                "reading a module", got=f"an op with the name {quote(name)}", needed="names in UTF-8, without NUL"
            )


class _Reader:
    """Walks through bytecode and MLIR ops side by side; the bytecode gives the structure, the ops the content.

    Attributes:
        reader: The reader of the bytecode.
        number: The number of the next op.
        scope: The visible values by number; None for values not read yet.
        next_value: The number of the next value that is defined.
        kinds: The kinds, by the numbers of name, attributes and properties.
        latest: Per name, the kind of the last op.
        use_orders: The values whose uses are not in the order of the ops.
    """

    def __init__(self, code: Bytecode, source: Source, table: AttrTable) -> None:
        self.reader = OpReader(code)
        self.names = code.names
        self.is_registered = code.is_registered
        self.source = source
        self.mlir = source.mlir
        self.table = table
        table.has_odd_strings |= code.has_odd_strings
        self.number = 0
        self.scope: list[Value | None] = []
        self.next_value = 0
        self.kinds: dict[tuple[int, int, int], SourceKind] = {}
        self.latest: list[SourceKind | None] = [None] * len(code.names)
        self.types = source.types
        source.resize(len(code.content(IR)) // SHORTEST_OP + 1)  # the compiled core appends slowly, unchecked
        self.locations, self.blocks, self.places = source.locations, source.blocks, source.places
        self.arg_places = source.arg_places
        self.use_orders: list[tuple[Value, UseOrder]] = []

    def read(self) -> Op:
        """The module op."""
        top = Block()
        count, _ = self.reader.block_header()
        self.read_ops(top, -1, count, [])
        for value, order in self.use_orders:
            _restore_use_order(value, order)
        assert top.first is not None
        return top.first.detach()

    def read_ops(self, block: Block, home: int, count: int, blocks: list[Block]) -> None:
        """Read ops into a block with the number `home`; `blocks` are the blocks of its region."""
        reader, names, latest, source = self.reader, self.names, self.latest, self.source
        kinds, locations, homes, places = source.kinds, self.locations, self.blocks, self.places
        last: Op | None = None
        for place in range(count):
            mask = reader.read_op()
            name, number = reader.name, self.number
            locations[number] = reader.location
            homes[number] = home
            places[number] = place
            kind = latest[name]
            if kind is None or kind.attributes != reader.attributes or kind.properties != reader.properties:
                kind = self.kind(home, place)
                latest[name] = kind
            kinds.append(kind)
            op = Op.__new__(Op)  # skips the constructor, which would copy and count again
            op.name = names[name]
            op.results = self.read_results(op, home, place) if mask & HAS_RESULTS else ()
            op.operands = self.read_operands(op) if mask & HAS_OPERANDS else ()
            op.attrs = kind.attrs
            op.regions = op.successors = ()
            op.source = source
            op.number = number
            op._location = op.next = None
            op.block = block
            op.prev = last
            op.order = place
            if last is None:
                block.first = op
            else:
                last.next = op
            block.last = last = op
            self.number = number + 1
            if mask & HAS_SUCCESSORS:
                op.successors = tuple([blocks[reader.next()] for _ in range(reader.next())])
            if op.results:
                self.define(op.results)
            if mask & (HAS_USE_ORDERS | HAS_REGIONS):
                self.read_inside(op, home, mask)
        block._ordered = True

    def read_inside(self, op: Op, home: int, mask: int) -> None:
        """Read the use orders and the regions of an op in block `home`, if it has them."""
        if mask & HAS_USE_ORDERS:
            self.read_use_orders(op.results)
        if mask & HAS_REGIONS:
            self.read_regions(op, home)

    def kind(self, home: int, place: int) -> SourceKind:
        """The kind of the op read last, which is at position `place` in block `home`."""
        reader = self.reader
        key = reader.name, reader.attributes, reader.properties
        found = self.kinds.get(key)
        if found is None:
            found = self.kinds[key] = self.new_kind(home, place)
        return found

    def new_kind(self, home: int, place: int) -> SourceKind:
        name, attributes, properties = self.reader.name, self.reader.attributes, self.reader.properties
        full_name = self.names[name]
        attrs = NO_ATTRS
        if attributes >= 0 or properties >= 0:
            op = self.mlir.op_at(home, place)
            if properties >= 0 and not self.is_registered[name]:
                _refuse_properties(op)
            attrs = self.table.decode_attrs(full_name, named_attributes(op.attributes))
        return SourceKind(full_name, attrs, name, attributes, properties)

    def read_results(self, op: Op, home: int, place: int) -> tuple[Value, ...]:
        """Read the results of an op, which is at position `place` in block `home`."""
        count = self.reader.next()
        if count == 1:  # most ops have one result; no list is made for it
            return (self.read_result(op, home, place, 0),)
        return tuple([self.read_result(op, home, place, index) for index in range(count)])

    def read_result(self, op: Op, home: int, place: int, index: int) -> Value:
        types, number = self.types, self.reader.next()
        type = types.get(number)
        if type is None:
            type = types[number] = self.table.type(self.mlir.op_at(home, place).results[index].type)
        value = Value.__new__(Value)
        value.type = type
        value.owner = op
        value.index = index
        value.flat_uses = _NO_USES
        value._location = None
        return value

    def read_operands(self, op: Op) -> tuple[Value, ...]:
        """Read the operands of an op; it becomes the last user of each."""
        count = self.reader.next()
        if count == 1:
            return (self.read_operand(op, 0),)
        if count == 2:
            first = self.read_operand(op, 0)
            return first, self.read_operand(op, 1)
        return tuple([self.read_operand(op, index) for index in range(count)])

    def read_operand(self, op: Op, index: int) -> Value:
        number = self.reader.next()
        known = self.scope[number]
        value = self.early_value(number) if known is None else known
        if value.flat_uses is _NO_USES:
            value.flat_uses = (op, index)
        else:
            value.add_use(op, index)
        return value

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
        """A placeholder for a value that is not defined yet: a block may precede the one that defines its operands."""
        found = self.scope[number] = Value(_UNKNOWN, Block(), 0)
        return found

    def read_regions(self, op: Op, home: int) -> None:
        """Read the regions of an op in block `home`; isolated regions number their values from 0."""
        count, is_isolated = self.reader.region_header()
        scope, next_value = self.scope, self.next_value
        if is_isolated:
            self.scope, self.next_value = [], 0
        op.regions = tuple([Region(op) for _ in range(count)])
        for number, region in enumerate(op.regions):
            self.read_region(region, home, number)
        self.scope, self.next_value = scope, next_value

    def read_region(self, region: Region, home: int, number: int) -> None:
        """Read the blocks of a region, which has this number in its op."""
        block_count = self.reader.next()
        if not block_count:
            return
        first = self.next_value
        end = len(self.scope)
        self.scope += [None] * self.reader.next()
        self.next_value = end
        blocks = [region.add_block() for _ in range(block_count)]
        for index, block in enumerate(blocks):
            ops, args = self.reader.block_header()
            inside = self.mlir.add_block(home, region.op.order, number, index, ops)
            if args:
                self.read_args(block, inside, args)
            self.read_ops(block, inside, ops, blocks)
        del self.scope[end:]
        self.next_value = first

    def read_args(self, block: Block, home: int, count: int) -> None:
        """Read `count` arguments of a block with the number `home`."""
        args = block.args
        for index in range(count):
            number, location = self.reader.arg()
            type = self.types.get(number)
            if type is None:
                type = self.types[number] = self.table.type(self.mlir.block(home).arguments[index].type)
            place = self.arg_places.get(location)
            if place is None:
                place = self.arg_places[location] = ArgPlace(self.source, home, index)
            args.append(Value(type, block, index, place))
        self.define(args)
        if self.reader.byte():
            self.read_use_orders(args)

    def read_use_orders(self, values: Sequence[Value]) -> None:
        """Record the use orders of values whose uses are not in the order of reading."""
        self.use_orders += [(values[order.value], order) for order in self.reader.use_orders(len(values))]


_NO_USES = ()
_UNKNOWN = ValueType(None, None, "unknown", False, False)


def _restore_use_order(value: Value, order: UseOrder) -> None:
    """Put the uses of a value into MLIR's order."""
    uses = list(reversed(value.uses))
    at = list(uses)
    numbers = order.numbers
    pairs = zip(numbers[::2], numbers[1::2]) if order.by_pairs else zip(numbers, range(len(uses)))
    for place, number in pairs:
        at[place] = uses[number]
    value.flat_uses = flat_uses(at[::-1])


def _refuse_properties(source: Any) -> None:
    """Refuse an op whose properties would be lost: the bindings do not provide those of unknown dialects."""
    needed = "only attributes: {...} instead of <{...}>"
    error = InvalidModuleError(
        "reading a module",
        where=format_location(source.location),
        got=f"properties on '{source.name}', an op of an unknown dialect",
        needed=needed,
    )
    message = f"'{source.name}' op of an unknown dialect has properties, needed {needed}"
    error.diagnostics = (Diagnostic(Severity.ERROR, message, source.location),)
    raise error
