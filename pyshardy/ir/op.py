"""The ops of a module as plain Python objects; `nodes.py` describes nodes in general.

Source: docs/semantics/propagation.md#order-of-uses
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyshardy.core.needs import Need
from pyshardy.ir.attributes import freeze
from pyshardy.ir.blocks import Block, Region, Value
from pyshardy.ir.locations import read_location
from pyshardy.ir.source import NeedPlace, OpPlace, Source, location_at
from pyshardy.ir.value_type import ValueType
from pyshardy.rules.ops import ops_that

TERMINATORS = ops_that(lambda traits: traits.is_terminator)
"""Ops that end a block."""


class Op:
    """An operation.

    Args:
        name: Full name, "stablehlo.add".
        operands: The values that it uses.
        result_types: Types of its results.
        attrs: Its attributes, both inherent and discardable.
        region_count: Number of empty regions to make.
        location: The MLIR location, or an object that provides it on demand.
        successors: Blocks a terminator may branch to.

    Attributes:
        attrs: The attributes. They never change, and ops may share them; `set_attr` and `remove_attr` replace them.
        source: The module that this op was read from; None for an op that was made or copied.
        number: Its number in that module.
    """

    __slots__ = (
        "name", "operands", "results", "attrs", "regions", "successors", "source", "number",
        "_location", "block", "prev", "next", "order",
    )  # fmt: skip

    source: Source | None
    number: int
    block: Block | None
    prev: Op | None
    next: Op | None

    def __init__(
        self,
        name: str,
        operands: Iterable[Value] = (),
        result_types: Iterable[ValueType] = (),
        attrs: dict[str, Any] | None = None,
        region_count: int = 0,
        location: Any = None,
        successors: tuple[Block, ...] = (),
    ) -> None:
        self.name = name
        self.operands = tuple(operands)
        results: list[Value] = []
        for type in result_types:
            results.append(Value(type, self, len(results)))
        self.results = tuple(results)
        self.attrs = freeze(attrs)
        self.regions: tuple[Region, ...] = tuple([Region(self) for _ in range(region_count)]) if region_count else ()
        self.successors = successors
        self._location = location
        self.source = None
        self.number = -1
        self.block = self.prev = self.next = None
        self.order = 0
        index = 0
        for value in self.operands:
            value.add_use(self, index)
            index += 1  # noqa: SIM113 (faster than enumerate where most ops have one or two operands)

    def __repr__(self) -> str:
        return f"<Op {self.name}>"

    def set_attr(self, name: str, value: Any) -> None:
        """Set an attribute of this op; ops that shared its attributes keep theirs."""
        self.attrs = self.attrs.with_value(name, value)

    def remove_attr(self, name: str) -> None:
        """Remove an attribute from this op, if it has it."""
        self.attrs = self.attrs.without(name)

    def replace_attrs(self, attrs: dict[str, Any]) -> None:
        """Replace all attributes of this op."""
        self.attrs = freeze(attrs)

    @property
    def location(self) -> Any:
        """The MLIR location."""
        found = self._location
        if found is None and self.source is not None:
            return self.source.location(self.number)
        made = location_at(found)
        if type(found) is not NeedPlace:
            self._location = made
        return made

    @location.setter
    def location(self, location: Any) -> None:
        self._location = location

    @property
    def need(self) -> Need | None:
        """What a collective, or an op that becomes one, is needed for; where a module was read, from its location."""
        found = self._location
        return found.need if type(found) is NeedPlace else read_location(self.location).need

    @property
    def place(self) -> Any:
        """The location, or an object that provides it: pass it to an op that replaces this one."""
        if self._location is None and self.source is not None:
            return OpPlace(self.source, self.number)
        return self._location

    @property
    def result(self) -> Value:
        """The only result."""
        (result,) = self.results
        return result

    @property
    def region(self) -> Region:
        """The only region."""
        (region,) = self.regions
        return region

    @property
    def parent_op(self) -> Op | None:
        """The op around this one; None for the module."""
        return None if self.block is None or self.block.region is None else self.block.region.op

    def ancestors(self) -> Iterator[Op]:
        """The ops around this one, innermost first."""
        parent = self.parent_op
        while parent is not None:
            yield parent
            parent = parent.parent_op

    def enclosing(self, name: str) -> Op | None:
        """The innermost op of this name around this one."""
        return next((op for op in self.ancestors() if op.name == name), None)

    @property
    def is_terminator(self) -> bool:
        """Whether this op ends its block; by position, because every block of these programs has a terminator."""
        return self.next is None and self.name in TERMINATORS

    def has_uses(self) -> bool:
        """Whether any result is used."""
        for result in self.results:  # noqa: SIM110 (`any` takes longer for so few)
            if result.flat_uses:
                return True
        return False

    def is_before(self, other: Op) -> bool:
        """Whether this op stands before `other` in the same block."""
        assert self.block is not None and self.block is other.block
        if not self.block._ordered:
            self.block._number()
        return self.order < other.order

    def rename(self, name: str) -> None:
        """Change the name of this op; operands, results and attributes stay."""
        region = None if self.block is None else self.block.region
        if region is not None:
            region.forget(self)
        self.name = name
        if region is not None:
            region.forget(self)

    def set_operand(self, index: int, value: Value) -> None:
        """Use `value` as operand `index`."""
        old = self.operands[index]
        old.drop_use(self, index)
        self._put_operand(index, value)
        value.add_use(self, index)

    def add_operand(self, value: Value) -> None:
        """Append `value` as the last operand."""
        value.add_use(self, len(self.operands))
        self.operands = (*self.operands, value)

    def _put_operand(self, index: int, value: Value) -> None:
        operands = self.operands
        if len(operands) == 1:
            self.operands = (value,)
        elif len(operands) == 2:
            self.operands = (operands[0], value) if index else (value, operands[1])
        else:
            self.operands = (*operands[:index], value, *operands[index + 1 :])

    def insert_before(self, anchor: Op) -> Op:
        """Put this detached op before `anchor`."""
        assert anchor.block is not None
        anchor.block._link(self, anchor.prev, anchor)
        return self

    def insert_after(self, anchor: Op) -> Op:
        """Put this detached op after `anchor`."""
        assert anchor.block is not None
        anchor.block._link(self, anchor, anchor.next)
        return self

    def detach(self) -> Op:
        """Take this op out of its block; it keeps its operands."""
        assert self.block is not None
        if self.block.region is not None:
            self.block.region.forget(self)
        if self.prev is None:
            self.block.first = self.next
        else:
            self.prev.next = self.next
        if self.next is None:
            self.block.last = self.prev
        else:
            self.next.prev = self.prev
        self.block = self.prev = self.next = None
        return self

    def erase(self) -> None:
        """Remove this op and all ops inside it; nothing may use its results."""
        assert not self.has_uses(), f"{self.name} still has uses"
        self.detach()
        self.drop_operands()

    def drop_operands(self) -> None:
        """Drop the operands of this op and of all ops inside it."""
        for index, value in enumerate(self.operands):
            value.drop_use(self, index)
        self.operands = ()
        for region in self.regions:
            for block in region.blocks:
                for op in block:
                    op.drop_operands()

    def clone(self, mapping: dict[Value, Value] | None = None) -> Op:
        """A detached copy with everything inside; operands found in `mapping` are replaced.

        Adds the results and block arguments of all copied ops to `mapping`.
        """
        mapping = {} if mapping is None else mapping
        operands = [mapping.get(value, value) for value in self.operands] if mapping else self.operands
        types = [result.type for result in self.results]
        copy = Op(self.name, operands, types, self.attrs, len(self.regions), self.place, self.successors)
        for result in copy.results:
            mapping[self.results[result.index]] = result
        if self.regions:
            from pyshardy.ir.clone import clone_region_into  # needs this module

            for region, target in zip(self.regions, copy.regions):
                clone_region_into(region, target, mapping)
        return copy
