"""Ops along some dimensions of a tensor: reduce, sort, the largest elements.

Source: docs/semantics/rules.md#rules-of-ops
"""

from __future__ import annotations

from pyshardy.rules.aligned import aligned_rule, builder_of, changed_dims
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import FactorKind, Rule


def reduce(spec: OpSpec, conservative: bool) -> Rule:
    """The reduced dimensions are reductions; all inputs, and all results, are alike.

    >>> print(reduce(OpSpec("stablehlo.reduce", [(6, 10), ()], [(6,)], {"dimensions": (1,)}), False))
    <([i, j], [])->([i]) {i=6, j=10} reduction={j}>
    """
    builder = builder_of(spec)
    inputs = range(len(spec.operand_shapes) // 2)
    kept_dims = iter(range(len(spec.result(0))))
    for dim, size in enumerate(spec.operand(0)):
        places = [(value, dim) for value in inputs]
        if dim in spec.attr("dimensions"):
            builder.factor(size, places, FactorKind.REDUCTION)
        else:
            kept = next(kept_dims)
            builder.factor(size, places + [(value, kept) for value in builder.results])
    return builder.finish()


def sort(spec: OpSpec, conservative: bool) -> Rule:
    """The sorted dimension needs replication; it is blocked where no other dimension has more than one element.

    A negative `dimension`, the default too, counts from the last one.

    >>> print(sort(OpSpec("stablehlo.sort", [(6, 10)], [(6, 10)], {"dimension": -1}), False))
    <([i, j])->([i, j]) {i=6, j=10} need_replication={j}>
    """
    sizes = spec.operand(0)
    sorted_dim = spec.attr("dimension", -1) % max(1, len(sizes))
    is_alone = all(size == 1 for dim, size in enumerate(sizes) if dim != sorted_dim)
    return aligned_rule(spec, sizes, (sorted_dim,), blocked=(sorted_dim,) if is_alone else ())


def top_k(spec: OpSpec, conservative: bool) -> Rule:
    """The dimension of which only some elements are kept is blocked.

    >>> print(top_k(OpSpec("stablehlo.custom_call", [(6, 10)], [(6, 3), (6, 3)]), False))
    <([i, j])->([i, j], [i, j]) {i=6, j=10} need_replication={j} blocked_propagation={j}>
    """
    cut = changed_dims(spec)
    return aligned_rule(spec, spec.operand(0), cut, blocked=cut)


def partial_reduce(spec: OpSpec, conservative: bool) -> Rule:
    """Approximate top-k, of values and their indices: the results have a factor of their own where they are shorter.

    >>> print(partial_reduce(OpSpec("stablehlo.custom_call", [(6,), (6,), (), ()], [(4,), (4,)]), False))
    <([i], [i], [], [])->([j], [j]) {i=6, j=4} need_replication={j} blocked_propagation={j}>
    """
    builder = builder_of(spec)
    for dim, (before, after) in enumerate(zip(spec.operand(0), spec.result(0))):
        if before == after:
            builder.factor(before, builder.everywhere(dim))
        else:
            builder.factor(before, [(0, dim), (1, dim)])
            builder.factor(
                after, [(value, dim) for value in builder.results], FactorKind.NEED_REPLICATION, blocked=True
            )
    return builder.finish()
