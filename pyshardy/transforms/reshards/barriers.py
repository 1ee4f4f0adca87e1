"""Looking through `sdy.propagation_barrier`."""

from __future__ import annotations

from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.dataflow import BARRIER
from pyshardy.ir.nodes import Value
from pyshardy.ir.shardings import get_sharding


def before_barriers(value: Value) -> Value:
    """The operand of the first barrier in a chain of barriers; other values unchanged."""
    while True:
        op = value.defining_op
        if op is None or op.name != BARRIER:
            return value
        value = op.operands[0]


def sharding_before_barriers(value: Value) -> TensorSharding | None:
    """The sharding of that operand."""
    return get_sharding(before_barriers(value))
