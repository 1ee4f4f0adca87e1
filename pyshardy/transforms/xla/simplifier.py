"""Simplifies a function, op by op in program order, until nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.blocks import Block, Value
from pyshardy.ir.op import Op
from pyshardy.ir.purity import is_dead
from pyshardy.ir.value_type import ValueType
from pyshardy.transforms.rewriting.greedy import OWN_CONSTANTS

if TYPE_CHECKING:
    import numpy as np

Simplified = Value | Sequence[Value] | bool | None
"""The values that replace the results of an op; True if the op itself was changed; None if nothing changed."""
Simplification = Callable[[Op, "Simplifier"], Simplified]
_CONSTANT = "stablehlo.constant"
_DROPPED = frozenset(("sdy.sharding_constraint",))
"""Ops that XLA also removes if they are unused."""


class Simplifier:
    """Simplifies one function, or the body of a manual computation.

    Args:
        function: The op whose region it is.
        attrs: The attributes and types of its context.
        table: The simplifications to try, by op name.

    Attributes:
        spread: Attributes of constants with the single number of another constant, by its attribute and the new type.
        splats: The single numbers of constants; None for constants with different elements.
    """

    def __init__(self, function: Op, attrs: AttrTable, table: Mapping[str, Simplification]) -> None:
        self.function = function
        self.attrs = attrs
        self.table = table
        self.spread: dict[tuple[Any, ValueType], Any] = {}
        self.splats: dict[Value, Any] = {}
        self._entry = function.region.blocks[0]
        self._constants: dict[Any, Op] = {}
        self._changes = 0
        self._is_waiting = False
        """Whether a value that a simplification asked about has several uses. Their number may shrink."""
        self._is_late = False
        """Whether transposes have been merged, so that others may become reshapes."""
        self._has_late = False

    def run(self) -> None:
        """Simplify until nothing changes, and remove dead ops."""
        self._sweep_all()
        while self._is_waiting and self._changes:
            self._sweep_all()
        if self._has_late:
            self._is_late = True
            self._sweep_all()

    def _sweep_all(self) -> None:
        self._changes, self._is_waiting = 0, False
        for block in self.function.region.blocks:
            self._sweep(block)

    def _sweep(self, block: Block) -> None:
        op = block.first
        while op is not None:
            following = op.next
            if op.name == _CONSTANT:
                self._keep(op)
            elif op.regions or op.name in self.table:
                self.visit(op)
            op = following
        remove_dead(block)

    def visit(self, op: Op) -> None:
        """Simplify an op until no simplification applies."""
        if op.name in OWN_CONSTANTS:
            Simplifier(op, self.attrs, self.table).run()
            return
        for region in op.regions:
            for block in region.blocks:
                self._sweep(block)
        simplification = self.table.get(op.name)
        found = None if simplification is None else simplification(op, self)
        if found is None:
            return
        self._changes += 1
        if found is True:
            self.visit(op)
            return
        values = (found,) if isinstance(found, Value) else found
        assert not isinstance(values, bool)
        for result, value in zip(op.results, values):
            result.replace_uses(value)
        op.erase()

    def _keep(self, op: Op) -> None:
        """Merge equal constants into one at the start of the function."""
        first = self._constants.setdefault((op.attrs["value"], op.result.type), op)
        if first is not op:
            op.result.replace_uses(first.result)
            op.erase()
        elif op.block is not self._entry:
            self._entry.prepend(op.detach())

    # For simplifications

    def has_one_use(self, value: Value) -> bool:
        """Whether the value has exactly one use; if not, the caller is tried again after other changes."""
        if value.has_one_use():
            return True
        self._is_waiting = True
        return False

    def may_be_late(self) -> bool:
        """Whether all other simplifications are done. If not, asking schedules another round when they are."""
        self._has_late = True
        return self._is_late

    def make(self, anchor: Op, name: str, operands: Sequence[Value], type: ValueType, **attrs: Any) -> Value:
        """The result of a new op before `anchor`, simplified."""
        op = Op(name, operands, [type], attrs, 0, anchor.place).insert_before(anchor)
        user = Op("", [op.result])
        self.visit(op)
        (value,) = user.operands
        user.drop_operands()
        return value

    def constant(self, anchor: Op, array: np.ndarray[Any, Any], type: ValueType) -> Value:
        """A constant with these elements, or with a single one for all."""
        from pyshardy.transforms.xla.simplifications.constants import attribute_of

        return self.constant_with(anchor, attribute_of(array, type), type)

    def constant_with(self, anchor: Op, attr: Any, type: ValueType) -> Value:
        """A constant with this attribute; equal constants are shared."""
        found = self._constants.get((attr, type))
        if found is None or found.block is None:
            found = self._constants[attr, type] = Op(_CONSTANT, (), [type], {"value": attr}, 0, anchor.place)
            self._entry.prepend(found)
        return found.result


def remove_dead(block: Block) -> None:
    """Erase the dead ops of a block, the last one first."""
    op = block.last
    while op is not None:
        before = op.prev
        if is_dropped(op):
            op.erase()
        op = before


def is_dropped(op: Op) -> bool:
    """Whether XLA removes an op: one with results that is dead, also a sharding constraint."""
    return bool(op.results) and is_dead(op, _DROPPED)
