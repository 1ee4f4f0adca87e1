"""Padding of products: the padding of contracted dimensions must be zero.

Source: docs/semantics/partitioner.md#padding-of-ops
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from pyshardy.ir.nodes import Op
from pyshardy.rules.dimension_numbers import DotNumbers
from pyshardy.transforms.padding.padder import Padder, shape_of


def pad_dot(op: Op, padder: Padder) -> None:
    """`dot`: the last dimension of the left side, the first of the right side.

    Without padding there, no constant is made. For `dot_general` a constant is made even if it is unused.
    """
    for index, dim in enumerate((op.operands[0].type.rank - 1, 0)):
        value = op.operands[index]
        if shape_of(value)[dim] != padder.original_shape(value)[dim]:
            op.set_operand(index, padder.with_zeros(value, op, [dim]))
    padder.pad_result(op.result)


def pad_dot_general(op: Op, padder: Padder) -> None:
    """`dot_general`: the contracting dimensions."""
    numbers = cast(DotNumbers, dict(padder.context.specs.spec(op).attributes)["dot_dimension_numbers"])
    _mask_operands(op, padder, numbers.lhs_contracting, numbers.rhs_contracting)
    padder.pad_result(op.result)


def _mask_operands(op: Op, padder: Padder, lhs_dims: Iterable[int], rhs_dims: Iterable[int]) -> None:
    for index, dims in enumerate((lhs_dims, rhs_dims)):
        op.set_operand(index, padder.with_zeros(op.operands[index], op, dims))
