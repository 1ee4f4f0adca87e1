"""Values that the regions of an op use from outside."""

from __future__ import annotations

from pyshardy.ir.nodes import Block, Op, Value


def captured_by(op: Op) -> list[Value]:
    """The values that the regions of an op capture, in the order of their first use.

    For a loop each once, for a branch once per region.
    """
    if op.name == "stablehlo.while":
        found: dict[Value, None] = {}
        for region in op.regions:
            _collect(region.block, found)
        return list(found)
    values: list[Value] = []
    for region in op.regions:
        inside: dict[Value, None] = {}
        _collect(region.block, inside)
        values += inside
    return values


def _collect(block: Block, found: dict[Value, None]) -> None:
    """Record the values that a block and the blocks inside it capture."""
    defined: set[Value] = set(block.args)
    for op in block:
        used: dict[Value, None] = dict.fromkeys(op.operands)
        for region in op.regions:
            for inner in region.blocks:
                _collect(inner, used)
        for value in used:
            if value not in defined:
                found[value] = None
        defined.update(op.results)


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
