"""The memory order of dimensions before XLA assigns layouts."""

from __future__ import annotations

from pyshardy.ir.nodes import Value
from pyshardy.rules.properties import ELEMENTWISE

_KEEPS = {
    **{name: 0 for name in ELEMENTWISE if not name.startswith("sdy.")},
    "stablehlo.reverse": 0,
    "stablehlo.select": 1,
    "stablehlo.clamp": 1,
}
"""The ops whose result has the memory order of an operand, and that operand."""
_TRANSPOSE = "stablehlo.transpose"


def has_default_layout(value: Value) -> bool:
    """Whether the last dimension of a value is contiguous in memory.

    A transpose in HLO moves no data: it only changes the memory order of the dimensions, until another kind of op.
    """
    order = tuple(range(value.type.rank))
    op = value.defining_op
    while op is not None and value.type.rank:
        if op.name == _TRANSPOSE:
            permutation = op.attrs["permutation"]
            order = tuple(permutation[dim] for dim in order)
            value = op.operands[0]
        elif op.name in _KEEPS:
            value = op.operands[_KEEPS[op.name]]
        else:
            break
        op = value.defining_op
    return order == tuple(sorted(order))
