"""Values that loops and branches capture. In HLO these are operands."""

from __future__ import annotations

from pyshardy.ir.captured import captured_by
from pyshardy.ir.nodes import Op


def add_captured(op: Op) -> None:
    """Append the values that the regions of an op capture to its operands."""
    for value in captured_by(op):
        op.add_operand(value)


def drop_captured(op: Op) -> None:
    """Remove the captured operands of a loop or a branch again."""
    own = len(op.results) if op.name == "stablehlo.while" else 1
    for index in range(own, len(op.operands)):
        op.operands[index].drop_use(op, index)
    op.operands = op.operands[:own]
