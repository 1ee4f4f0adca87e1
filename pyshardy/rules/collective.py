"""The collectives of StableHLO, which pass over devices outside of the mesh of Shardy.

Source: docs/semantics/rules.md#rules-of-ops
"""

from __future__ import annotations

from collections.abc import Collection

from pyshardy.rules.aligned import builder_of
from pyshardy.rules.elementwise import pointwise
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import FactorKind, Rule
from pyshardy.rules.rule_builder import RuleBuilder


def all_reduce(spec: OpSpec, conservative: bool) -> Rule | None:
    """Pointwise over the first tensor; where another one has a larger rank, every tensor for itself.

    >>> print(all_reduce(OpSpec("stablehlo.all_reduce", [(6, 10), (12,)], [(6, 10), (12,)]), False))
    <([i, j], [i])->([i, j], [i]) {i=6, j=10}>
    >>> print(all_reduce(OpSpec("stablehlo.all_reduce", [(5,), (4, 8)], [(5,), (4, 8)]), False))
    <([i], [j, k])->([i], [j, k]) {i=5, j=4, k=8}>
    """
    rule = pointwise(spec, conservative)
    if rule is not None or None in spec.result_shapes:
        return rule
    builder = builder_of(spec)
    for operand, result in zip(builder.operands, builder.results):
        for dim, size in enumerate(spec.operand(operand)):
            builder.factor(size, [(operand, dim), (result, dim)])
    return builder.finish()


def all_gather(spec: OpSpec, conservative: bool) -> Rule | None:
    """The gathered dimension needs replication, with one factor before and one after.

    None if the tensors differ in rank.

    >>> print(all_gather(OpSpec("stablehlo.all_gather", [(6, 5)], [(6, 15)], {"all_gather_dim": 1}), False))
    <([i, j])->([i, k]) {i=6, j=5, k=15} need_replication={j, k}>
    """
    return _resizing(spec, [spec.attr("all_gather_dim")])


def reduce_scatter(spec: OpSpec, conservative: bool) -> Rule | None:
    """The scattered dimension needs replication, with one factor before and one after.

    None if the tensors differ in rank.

    >>> print(reduce_scatter(OpSpec("stablehlo.reduce_scatter", [(6, 15)], [(6, 5)], {"scatter_dimension": 1}), False))
    <([i, j])->([i, k]) {i=6, j=15, k=5} need_replication={j, k}>
    """
    return _resizing(spec, [spec.attr("scatter_dimension")])


def all_to_all(spec: OpSpec, conservative: bool) -> Rule | None:
    """The split and the joined dimension need replication, each with one factor before and one after.

    None if the tensors differ in rank.

    >>> facts = {"split_dimension": 0, "concat_dimension": 1}
    >>> print(all_to_all(OpSpec("stablehlo.all_to_all", [(9, 10)], [(3, 30)], facts), False))
    <([i, k])->([j, l]) {i=9, j=3, k=10, l=30} need_replication={i, j, k, l}>
    """
    dims = [spec.attr("split_dimension"), spec.attr("concat_dimension")]
    return _resizing(spec, dict.fromkeys(dims))


def _resizing(spec: OpSpec, resized: Collection[int]) -> Rule | None:
    sizes = spec.operand(0)
    if any(len(shape or ()) != len(sizes) for shape in spec.operand_shapes + spec.result_shapes):
        return None
    builder = builder_of(spec)
    for dim, size in enumerate(sizes):
        if dim not in resized:
            builder.factor(size, builder.everywhere(dim))
    for dim in resized:
        _add_separate(builder, dim, sizes[dim], spec.result(0)[dim])
    return builder.finish()


def _add_separate(builder: RuleBuilder, dim: int, before: int, after: int) -> None:
    builder.factor(before, [(value, dim) for value in builder.operands], FactorKind.NEED_REPLICATION)
    builder.factor(after, [(value, dim) for value in builder.results], FactorKind.NEED_REPLICATION)
