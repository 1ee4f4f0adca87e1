"""Inputs that are kept in f32 although everything that reads them makes bf16 of them first."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from pyshardy.ir.blocks import Value
from pyshardy.ir.functions import main_function
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.symbols import SymbolTable
from pyshardy.report.summary import TensorRow
from pyshardy.results.propagation import Propagation
from pyshardy.rules.properties import IDENTITIES

KEPT, READ = "f32", "bf16"
_CONVERT, _WHILE, _BARRIER = "stablehlo.convert", "stablehlo.while", "stablehlo.optimization_barrier"
_COMPUTATIONS = ("sdy.manual_computation", "sdy.named_computation")
_MOVES = IDENTITIES | {f"stablehlo.{name}" for name in ("reshape", "transpose", "slice", "dynamic_slice", "gather")}
"""Ops whose result has elements of the first operand, and no others."""


def too_exact(propagated: Propagation) -> list[TensorRow]:
    """The inputs in f32 of which only bf16 is read, the largest first.

    An input of whose shape an output in f32 is does not count: that is its gradient, or takes its place in the next
    step, and sums of small steps need the bits.

    Args:
        propagated: The program.
    """
    given = {row.shape for row in propagated.summary.outputs if row.dtype == KEPT}
    readers = _Readers(propagated.before.root)
    arguments = main_function(propagated.before.root).region.block.args
    found = [
        row
        for port, row in zip(propagated.inputs, propagated.summary.inputs, strict=True)
        if row.dtype == KEPT and row.shape not in given and readers.are_of(arguments[port.index], READ)
    ]
    return sorted(found, key=lambda row: -row.bytes_per_device)


class _Readers:
    """What reads the values of a program, behind ops that only move their elements."""

    def __init__(self, root: Op) -> None:
        self.root = root
        self.table = SymbolTable(root)

    @cached_property
    def calls(self) -> dict[str, list[Op]]:
        """The calls of every function."""
        found: dict[str, list[Op]] = {}
        for call in ops_named(self.root, ("func.call",)):
            found.setdefault(call.attrs["callee"], []).append(call)
        return found

    def are_of(self, value: Value, element: str) -> bool:
        """Whether a value is read, and only to convert it to an element type."""
        todo, seen, is_read = [value], {value}, False
        while todo:
            for op, index in todo.pop().uses:
                if op.name == _CONVERT and op.result.type.element == element:
                    is_read = True
                    continue
                moved = self._moved(op, index)
                if not moved:
                    return False
                todo += [one for one in moved if one not in seen]
                seen.update(moved)
        return is_read

    def _moved(self, op: Op, index: int) -> Sequence[Value]:
        """The values that have the elements of an operand; none if the op computes with it, or gives it to the user."""
        parent = op.parent_op
        if op.name == "func.return" and parent is not None:
            return [call.results[index] for call in self.calls.get(parent.attrs["sym_name"], ())]
        if op.name == "func.call":
            return [self.table[op.attrs["callee"]].region.block.args[index]]
        if op.name in _COMPUTATIONS:
            return [op.region.block.args[index]]
        if op.name == _BARRIER:
            return [op.results[index]]
        loop = parent if parent is not None and parent.name == _WHILE and op.is_terminator else op
        if loop.name == _WHILE:
            is_condition = loop is not op and op.block is loop.regions[0].block
            return () if is_condition else [loop.results[index], *(one.block.args[index] for one in loop.regions)]
        return op.results if op.name in _MOVES and not index else ()
