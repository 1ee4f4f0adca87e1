"""Slices, with constant and with computed places.

Source: docs/semantics/rules.md#rules-of-ops
"""

from __future__ import annotations

from pyshardy.rules.aligned import aligned_rule, builder_of, changed_dims
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import FactorKind, Rule


def static_slice(spec: OpSpec, conservative: bool) -> Rule:
    """A dimension that is cut is a permutation, blocked in conservative mode.

    >>> print(static_slice(OpSpec("stablehlo.slice", [(6, 10)], [(6, 4)]), False))
    <([i, j])->([i, j]) {i=6, j=10} permutation={j}>
    """
    cut = changed_dims(spec)
    return aligned_rule(spec, spec.operand(0), cut, FactorKind.PERMUTATION, blocked=cut if conservative else ())


def dynamic_slice(spec: OpSpec, conservative: bool) -> Rule:
    """A dimension that is cut needs replication and is blocked.

    >>> print(dynamic_slice(OpSpec("stablehlo.dynamic_slice", [(6, 10), (), ()], [(6, 3)]), False))
    <([i, j], [], [])->([i, j]) {i=6, j=10} need_replication={j} blocked_propagation={j}>
    """
    cut = changed_dims(spec)
    return aligned_rule(spec, spec.operand(0), cut, blocked=cut)


def dynamic_update_slice(spec: OpSpec, conservative: bool) -> Rule:
    """In a dimension that is updated in part, the update has a factor of its own; both are permutations.

    >>> print(dynamic_update_slice(OpSpec("stablehlo.dynamic_update_slice", [(10,), (3,), ()], [(10,)]), False))
    <([i], [j], [])->([i]) {i=10, j=3} permutation={i, j}>
    """
    builder = builder_of(spec)
    (result,) = builder.results
    for dim, (size, updated) in enumerate(zip(spec.operand(0), spec.operand(1))):
        if size == updated:
            builder.factor(size, builder.everywhere(dim))
        else:
            builder.factor(size, [(0, dim), (result, dim)], FactorKind.PERMUTATION)
            builder.factor(updated, [(1, dim)], FactorKind.PERMUTATION)
    return builder.finish()
