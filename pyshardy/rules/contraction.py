"""Contractions: `dot` and `dot_general`.

Source: docs/semantics/rules.md#rules-of-ops
"""

from __future__ import annotations

from pyshardy.rules.aligned import builder_of
from pyshardy.rules.dimension_numbers import DotNumbers
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import FactorKind, Rule


def dot(spec: OpSpec, conservative: bool) -> Rule:
    """Product of two tensors of rank 1 or 2.

    >>> print(dot(OpSpec("stablehlo.dot", [(6, 10), (10,)], [(6,)]), False))
    <([i, j], [j])->([i]) {i=6, j=10} reduction={j}>
    """
    builder = builder_of(spec)
    lhs, rhs = spec.operand(0), spec.operand(1)
    if len(lhs) == 2:
        builder.factor(lhs[0], [(0, 0), (2, 0)])
    if len(rhs) == 2:
        builder.factor(rhs[1], [(1, 1), (2, len(spec.result(0)) - 1)])
    builder.factor(rhs[0], [(0, len(lhs) - 1), (1, 0)], FactorKind.REDUCTION)
    return builder.finish()


def dot_general(spec: OpSpec, conservative: bool) -> Rule:
    """Batching, lhs, rhs and contracting dimensions, in this order, which is also that of the result.

    >>> numbers = DotNumbers(lhs_contracting=(1,), rhs_contracting=(0,))
    >>> spec = OpSpec("stablehlo.dot_general", [(4, 8), (8, 16)], [(4, 16)], {"dot_dimension_numbers": numbers})
    >>> print(dot_general(spec, False))
    <([i, k], [k, j])->([i, j]) {i=4, j=16, k=8} reduction={k}>
    """
    builder = builder_of(spec)
    lhs, rhs = spec.operand(0), spec.operand(1)
    numbers: DotNumbers = spec.attr("dot_dimension_numbers")
    result_dims = iter(range(len(spec.result(0))))
    for left, right in zip(numbers.lhs_batching, numbers.rhs_batching):
        builder.factor(lhs[left], [(0, left), (1, right), (2, next(result_dims))])
    for value, shape, taken in (
        (0, lhs, numbers.lhs_batching + numbers.lhs_contracting),
        (1, rhs, numbers.rhs_batching + numbers.rhs_contracting),
    ):
        for dim, size in enumerate(shape):
            if dim not in taken:
                builder.factor(size, [(value, dim), (2, next(result_dims))])
    for left, right in zip(numbers.lhs_contracting, numbers.rhs_contracting):
        builder.factor(lhs[left], [(0, left), (1, right)], FactorKind.REDUCTION)
    return builder.finish()
