"""Random bits, and the state they are made from.

Source: docs/semantics/rules.md#rules-of-ops
"""

from __future__ import annotations

from pyshardy.rules.aligned import builder_of
from pyshardy.rules.elementwise import pointwise
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import FactorKind, Rule


def rng_bit_generator(spec: OpSpec, conservative: bool) -> Rule:
    """The state needs replication; the bits can be sharded at will.

    >>> print(rng_bit_generator(OpSpec("stablehlo.rng_bit_generator", [(2,)], [(2,), (6, 10)]), False))
    <([i])->([i], [j, k]) {i=2, j=6, k=10} need_replication={i} blocked_propagation={i}>
    """
    builder = builder_of(spec)
    for dim, size in enumerate(spec.operand(0)):
        builder.factor(size, [(0, dim), (1, dim)], FactorKind.NEED_REPLICATION, blocked=True)
    for dim, size in enumerate(spec.result(1)):
        builder.factor(size, [(2, dim)])
    return builder.finish()


def x64_combine(spec: OpSpec, conservative: bool) -> Rule | None:
    """Joins two halves into 64-bit elements: pointwise, unless the fact `feeds_rng` says that it is a random state.

    >>> spec = OpSpec("stablehlo.custom_call", [(2,), (2,)], [(2,)], {"feeds_rng": True})
    >>> print(x64_combine(spec, False))
    <([i], [i])->([i]) {i=2} need_replication={i} blocked_propagation={i}>
    """
    if not spec.attr("feeds_rng", False) or not spec.result(0):
        return pointwise(spec, conservative)
    builder = builder_of(spec)
    builder.factor(spec.result(0)[0], builder.everywhere(0), FactorKind.NEED_REPLICATION, blocked=True)
    return builder.finish()
