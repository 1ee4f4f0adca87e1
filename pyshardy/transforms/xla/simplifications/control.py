"""Simplification of loops and branches."""

from __future__ import annotations

from pyshardy.ir.constants import constant_of, splat_of
from pyshardy.ir.nodes import Op
from pyshardy.transforms.xla.loops import without_invariants
from pyshardy.transforms.xla.simplifications.constants import array_of
from pyshardy.transforms.xla.simplifier import Simplified, Simplifier


def loop(op: Op, to: Simplifier) -> Simplified:
    """Replace a loop that never runs by its operands; remove values that never change from the state of other loops."""
    if splat_of(op.regions[0].block.terminator.operands[0]) is False:
        return op.operands
    made = without_invariants(op)
    if made is not None:
        to.visit(made)
    return None


def branch(op: Op, to: Simplifier) -> Simplified:
    """Replace a conditional by the branch that is known to be taken."""
    index = array_of(op.operands[0]) if constant_of(op.operands[0]) is not None else None
    if index is None:
        return None
    number, count = int(index), len(op.regions)
    if op.name == "stablehlo.if":
        number = 1 - number
    block = op.regions[number if 0 <= number < count else count - 1].block
    terminator = block.terminator
    values = terminator.operands
    terminator.detach().drop_operands()
    for inner in block:
        inner.detach().insert_before(op)
    return values
