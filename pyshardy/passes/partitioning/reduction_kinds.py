"""Reading from the body of an op how it combines values."""

from __future__ import annotations

from pyshardy.core.sharding import ReductionKind
from pyshardy.ir.nodes import Op, Value

_KINDS = {
    "stablehlo.add": ReductionKind.SUM,
    "stablehlo.maximum": ReductionKind.MAX,
    "stablehlo.minimum": ReductionKind.MIN,
}


def body_kind(op: Op) -> ReductionKind | None:
    """How the body of an op combines values; None unless it does so in one known way for all that it returns."""
    terminator = op.regions[0].blocks[0].terminator
    if terminator.name != "stablehlo.return":
        return None
    kinds = {_kind_of(value) for value in terminator.operands}
    return kinds.pop() if len(kinds) == 1 else None


def _kind_of(value: Value) -> ReductionKind | None:
    op = value.defining_op
    return None if op is None else _KINDS.get(op.name)


def combiners(op: Op) -> tuple[str, ...] | None:
    """The ops that combine old and new value for each result of a reduction; None if the body does anything else."""
    block = op.regions[0].blocks[0]
    returned = block.terminator.operands
    count = len(returned)
    if len(block.args) != 2 * count:
        return None
    found = []
    for index, value in enumerate(returned):
        combined = value.defining_op
        if combined is None or len(combined.operands) != 2:
            return None
        if set(combined.operands) != {block.args[index], block.args[index + count]}:
            return None
        found.append(combined.name)
    return tuple(found)
