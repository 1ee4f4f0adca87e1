"""Ops that move a window over a tensor: reduce_window, select_and_scatter.

Source: docs/semantics/rules.md#rules-of-ops
"""

from __future__ import annotations

from pyshardy.rules.aligned import aligned_rule, builder_of
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import FactorKind, Rule


def reduce_window(spec: OpSpec, conservative: bool) -> Rule:
    """A dimension along which windows overlap or skip is a permutation, blocked in conservative mode.

    >>> facts = {"window_dimensions": (1, 3), "padding": ((0, 0), (1, 1))}
    >>> print(reduce_window(OpSpec("stablehlo.reduce_window", [(6, 10), ()], [(6, 10)], facts), False))
    <([i, j], [])->([i, j]) {i=6, j=10} permutation={j}>
    """
    moving = _moving_dims(spec)
    return aligned_rule(spec, spec.result(0), moving, FactorKind.PERMUTATION, blocked=moving if conservative else ())


def select_and_scatter(spec: OpSpec, conservative: bool) -> Rule:
    """Along a dimension with windows the source has a factor of its own; both are blocked in conservative mode.

    >>> facts = {"window_dimensions": (1, 2), "window_strides": (1, 2)}
    >>> spec = OpSpec("stablehlo.select_and_scatter", [(6, 10), (6, 5), ()], [(6, 10)], facts)
    >>> print(select_and_scatter(spec, False))
    <([i, k], [i, j], [])->([i, k]) {i=6, j=5, k=10} need_replication={j} permutation={k}>
    """
    builder = builder_of(spec)
    moving = _moving_dims(spec)
    for dim, size in enumerate(spec.result(0)):
        if dim in moving:
            builder.factor(spec.operand(1)[dim], [(1, dim)], FactorKind.NEED_REPLICATION, conservative)
            builder.factor(size, [(0, dim), (3, dim)], FactorKind.PERMUTATION, conservative)
        else:
            builder.factor(size, builder.everywhere(dim))
    return builder.finish()


def _moving_dims(spec: OpSpec) -> list[int]:
    """The dimensions whose window has a size or stride other than 1, or padding; dilations do not count."""
    rank = len(spec.result(0))
    sizes = spec.attr("window_dimensions", None) or (1,) * rank
    strides = spec.attr("window_strides", None) or (1,) * rank
    padding = spec.attr("padding", None) or ((0, 0),) * rank
    return [dim for dim in range(rank) if (sizes[dim], strides[dim], *padding[dim]) != (1, 1, 0, 0)]
