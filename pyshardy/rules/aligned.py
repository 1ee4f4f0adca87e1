"""The pattern that most rules share: dimension `d` of every tensor is one factor.

Source: docs/semantics/rules.md#building-a-rule
"""

from __future__ import annotations

from collections.abc import Collection

from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import FactorKind, Rule
from pyshardy.rules.rule_builder import RuleBuilder


def builder_of(spec: OpSpec) -> RuleBuilder:
    """An empty rule builder with the shapes of the op.

    >>> print(builder_of(OpSpec("stablehlo.tanh", [(4,)], [(4,)])).finish())
    <([i])->([j]) {i=1, j=1}>
    """
    return RuleBuilder(spec.operand_shapes, spec.result_shapes)


def aligned_rule(
    spec: OpSpec,
    sizes: tuple[int, ...],
    special: Collection[int] = (),
    kind: FactorKind = FactorKind.NEED_REPLICATION,
    blocked: Collection[int] = (),
) -> Rule:
    """The rule with one factor per dimension, shared by that dimension of every tensor of rank 1 or more.

    Args:
        spec: The op.
        sizes: Size of every factor.
        special: The dimensions whose factor is not pass-through.
        kind: The kind of these factors.
        blocked: The dimensions along which nothing propagates.

    >>> print(aligned_rule(OpSpec("stablehlo.slice", [(6, 10)], [(6, 4)]), (6, 10), special=[1]))
    <([i, j])->([i, j]) {i=6, j=10} need_replication={j}>
    """
    builder = builder_of(spec)
    for dim, size in enumerate(sizes):
        found = kind if dim in special else FactorKind.PASS_THROUGH
        builder.factor(size, builder.everywhere(dim), found, dim in blocked)
    return builder.finish()


def changed_dims(spec: OpSpec) -> list[int]:
    """The dimensions in which the first operand and the first result differ in size.

    >>> changed_dims(OpSpec("stablehlo.slice", [(6, 10)], [(6, 4)]))
    [1]
    """
    pairs = zip(spec.operand(0), spec.result(0))
    return [dim for dim, (before, after) in enumerate(pairs) if before != after]
