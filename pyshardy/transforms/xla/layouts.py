"""In which order XLA lays out the dimensions of what it computes, before it assigns layouts."""

from __future__ import annotations

from pyshardy.ir.nodes import Value
from pyshardy.rules.properties import ELEMENTWISE

_KEEPS = {
    **{name: 0 for name in ELEMENTWISE if not name.startswith("sdy.")},
    "stablehlo.reverse": 0,
    "stablehlo.select": 1,
    "stablehlo.clamp": 1,
}
"""The ops whose result lies in memory as an operand does, and which operand."""
_TRANSPOSE = "stablehlo.transpose"


def has_default_layout(value: Value) -> bool:
    """Whether a value lies in memory with its last dimension together.

    HLO transposes without a move: only the order of the dimensions in memory changes, until an op of another kind.
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
