"""The number of products that an op sums per element of its result."""

from __future__ import annotations

from math import prod
from typing import Any

from pyshardy.ir.nodes import Op
from pyshardy.ir.opspec import OpSpecReader

CONTRACTIONS = frozenset(("stablehlo.convolution", "stablehlo.dot_general"))
"""The ops that sum products of two operands."""


def products_summed(op: Op, reader: OpSpecReader) -> int:
    """The number of products that one of `CONTRACTIONS` sums per element of its result."""
    attributes: Any = dict(reader.spec(op).attributes)
    left, right = (operand.type.shape or () for operand in op.operands[:2])
    if op.name == "stablehlo.dot_general":
        dims: tuple[int, ...] = attributes["dot_dimension_numbers"].lhs_contracting
        return prod([left[dim] for dim in dims])
    features: int = right[attributes["dimension_numbers"].kernel_output_feature]
    return prod(right) // max(1, features)
