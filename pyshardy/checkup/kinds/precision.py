"""Inputs that are kept in f32 although everything that reads them makes bf16 of them first."""

from __future__ import annotations

from pyshardy.ir.blocks import Value
from pyshardy.ir.functions import main_function
from pyshardy.ir.readers import Readers
from pyshardy.report.summary import TensorRow
from pyshardy.results.propagation import Propagation
from pyshardy.rules.properties import IDENTITIES

KEPT, READ = "f32", "bf16"
_CONVERT = "stablehlo.convert"
_MOVES = IDENTITIES | {f"stablehlo.{name}" for name in ("reshape", "transpose", "slice", "dynamic_slice", "gather")}
"""Ops whose result has elements of the first operand, and no others."""


def too_exact(propagated: Propagation) -> list[TensorRow]:
    """The inputs in f32 of which only bf16 is read, the largest first.

    An input does not count if an output in f32 has its shape. That output is its gradient, or replaces it in the next
    step: sums of small steps need the bits.

    Args:
        propagated: The program.
    """
    given = {row.shape for row in propagated.summary.outputs if row.dtype == KEPT}
    readers = Readers(propagated.before.root)
    arguments = main_function(propagated.before.root).region.block.args
    found = [
        row
        for port, row in zip(propagated.inputs, propagated.summary.inputs, strict=True)
        if row.dtype == KEPT and row.shape not in given and _is_read_as(readers, arguments[port.index], READ)
    ]
    return sorted(found, key=lambda row: -row.bytes_per_device)


def _is_read_as(readers: Readers, value: Value, element: str) -> bool:
    """Whether a value is read, and only to convert it to an element type, behind ops that only move its elements."""
    todo, seen, is_read = [value], {value}, False
    while todo:
        for op, index in todo.pop().uses:
            if op.name == _CONVERT and op.result.type.element == element:
                is_read = True
                continue
            moved = op.results if op.name in _MOVES and not index else readers.after(op, index)
            if not moved:
                return False
            todo += [one for one in moved if one not in seen]
            seen.update(moved)
    return is_read
