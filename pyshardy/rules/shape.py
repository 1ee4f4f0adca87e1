"""Ops that rearrange, repeat, join or reinterpret elements.

Source: docs/semantics/rules.md#rules-of-ops
"""

from __future__ import annotations

from pyshardy.rules.aligned import aligned_rule, builder_of, changed_dims
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import FactorKind, Rule


def transpose(spec: OpSpec, conservative: bool) -> Rule:
    """Every dimension moves with its factor; factors are numbered in the order of the result.

    >>> print(transpose(OpSpec("stablehlo.transpose", [(6, 5)], [(5, 6)], {"permutation": (1, 0)}), False))
    <([j, i])->([i, j]) {i=5, j=6}>
    """
    builder = builder_of(spec)
    for dim, source in enumerate(spec.attr("permutation")):
        builder.factor(spec.operand(0)[source], [(0, source), (1, dim)])
    return builder.finish()


def broadcast_in_dim(spec: OpSpec, conservative: bool) -> Rule:
    """New dimensions, and those grown from size 1, have a factor only in the result.

    >>> facts = {"broadcast_dimensions": (1, 2)}
    >>> print(broadcast_in_dim(OpSpec("stablehlo.broadcast_in_dim", [(5, 1)], [(6, 5, 7)], facts), False))
    <([j, k])->([i, j, l]) {i=6, j=5, k=1, l=7}>
    """
    builder = builder_of(spec)
    sources = {target: dim for dim, target in enumerate(spec.attr("broadcast_dimensions"))}
    for dim, size in enumerate(spec.result(0)):
        source = sources.get(dim)
        if source is None:
            builder.factor(size, [(1, dim)])
        elif spec.operand(0)[source] == size:
            builder.factor(size, [(0, source), (1, dim)])
        else:
            builder.factor(1, [(0, source)])
            builder.factor(size, [(1, dim)])
    return builder.finish()


def reverse(spec: OpSpec, conservative: bool) -> Rule:
    """A reversed dimension is a permutation.

    >>> print(reverse(OpSpec("stablehlo.reverse", [(6, 10)], [(6, 10)], {"dimensions": (1,)}), False))
    <([i, j])->([i, j]) {i=6, j=10} permutation={j}>
    """
    return aligned_rule(spec, spec.result(0), spec.attr("dimensions"), FactorKind.PERMUTATION)


def concatenate(spec: OpSpec, conservative: bool) -> Rule:
    """The joined dimension is a permutation where slices are shifted back together, and else needs replication.

    The fact `joins_slices` says which of the two it is. In conservative mode the dimension has no factor.

    >>> print(concatenate(OpSpec("stablehlo.concatenate", [(6,), (4,)], [(10,)], {"dimension": 0}), False))
    <([i], [i])->([i]) {i=10} need_replication={i}>
    """
    joined = spec.attr("dimension")
    if not conservative:
        kind = FactorKind.PERMUTATION if spec.attr("joins_slices", False) else FactorKind.NEED_REPLICATION
        return aligned_rule(spec, spec.result(0), (joined,), kind)
    builder = builder_of(spec)
    for dim, size in enumerate(spec.result(0)):
        if dim != joined:
            builder.factor(size, builder.everywhere(dim))
    return builder.finish()


def pad(spec: OpSpec, conservative: bool) -> Rule:
    """A padded dimension is a permutation; in conservative mode it is blocked if its size changes.

    >>> padding = {"edge_padding_low": (0, 2), "edge_padding_high": (0, 0), "interior_padding": (0, 0)}
    >>> print(pad(OpSpec("stablehlo.pad", [(6, 10), ()], [(6, 12)], padding), False))
    <([i, j], [])->([i, j]) {i=6, j=10} permutation={j}>
    """
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    amounts = zip(*(spec.attr(name) for name in names))
    padded = [dim for dim, amount in enumerate(amounts) if any(amount)]
    blocked = [dim for dim in changed_dims(spec) if dim in padded] if conservative else ()
    return aligned_rule(spec, spec.operand(0), padded, FactorKind.PERMUTATION, blocked)


def bitcast_convert(spec: OpSpec, conservative: bool) -> Rule:
    """Pointwise; the dimension that the wider elements lack needs replication.

    >>> print(bitcast_convert(OpSpec("stablehlo.bitcast_convert", [(6, 10)], [(6, 10, 4)]), False))
    <([i, j])->([i, j, k]) {i=6, j=10, k=4} need_replication={k}>
    """
    builder = builder_of(spec)
    operand, result = spec.operand(0), spec.result(0)
    shared = min(len(operand), len(result))
    for dim in range(shared):
        builder.factor(operand[dim], [(0, dim), (1, dim)])
    longer, sizes = (0, operand) if len(operand) > len(result) else (1, result)
    for dim in range(shared, len(sizes)):
        builder.factor(sizes[dim], [(longer, dim)], FactorKind.NEED_REPLICATION)
    return builder.finish()
