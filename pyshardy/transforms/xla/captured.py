"""What loops and branches use from outside: in HLO, operands of them."""

from __future__ import annotations

from pyshardy.ir.nodes import Block, Op, Value


def add_captured(op: Op) -> None:
    """Make what the regions of an op use from outside operands of it, behind those that it has."""
    for value in captured(op):
        op.add_operand(value)


def drop_captured(op: Op) -> None:
    """Leave a loop or a branch its own operands alone."""
    own = len(op.results) if op.name == "stablehlo.while" else 1
    for index in range(own, len(op.operands)):
        op.operands[index].drop_use(op, index)
    op.operands = op.operands[:own]


def captured(op: Op) -> list[Value]:
    """The values from outside that the regions of an op use, in the order in which they do.

    Those of a loop once for all its regions, those of a branch once for every region.
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
    """Note the values that a block, with all in it, uses and does not define."""
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
