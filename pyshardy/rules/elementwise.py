"""Ops that treat every position alike: pointwise ops, clamp, select, normalisation with given statistics.

Source: docs/semantics/rules.md#rules-of-ops
"""

from __future__ import annotations

from functools import lru_cache

from pyshardy.core.intern import register_cache
from pyshardy.rules.aligned import aligned_rule, builder_of
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import Rule, Shape


def pointwise(spec: OpSpec, conservative: bool) -> Rule | None:
    """One pass-through factor per dimension of the first result; a value of smaller rank has the leading ones.

    None if the first result has no dimensions to speak of (a token), or if some value has a larger rank.

    >>> print(pointwise(OpSpec("stablehlo.add", [(6, 1), (6, 1)], [(6, 1)]), False))
    <([i, j], [i, j])->([i, j]) {i=6, j=1}>
    """
    return _pointwise(spec.operand_shapes, spec.result_shapes)


@lru_cache(maxsize=4096)
def _pointwise(operand_shapes: tuple[Shape, ...], result_shapes: tuple[Shape, ...]) -> Rule | None:
    if not result_shapes or result_shapes[0] is None:
        return None
    sizes = result_shapes[0]
    if any(len(shape) > len(sizes) for shape in operand_shapes + result_shapes if shape):
        return None
    dims = [(dim,) for dim in range(len(sizes))]
    operands = [dims[: len(shape or ())] for shape in operand_shapes]
    results = [dims[: len(shape or ())] for shape in result_shapes]
    return Rule(sizes, operands, results)


register_cache(_pointwise.cache_clear)


def clamp(spec: OpSpec, conservative: bool) -> Rule:
    """Pointwise; the bounds may be scalars.

    >>> print(clamp(OpSpec("stablehlo.clamp", [(), (6,), (6,)], [(6,)]), False))
    <([], [i], [i])->([i]) {i=6}>
    """
    return aligned_rule(spec, spec.operand(1))


def select(spec: OpSpec, conservative: bool) -> Rule:
    """Pointwise; the predicate may be a scalar.

    >>> print(select(OpSpec("stablehlo.select", [(), (6,), (6,)], [(6,)]), False))
    <([], [i], [i])->([i]) {i=6}>
    """
    return aligned_rule(spec, spec.result(0))


def batch_norm_inference(spec: OpSpec, conservative: bool) -> Rule:
    """Pointwise in the tensor; scale, offset, mean and variance have the feature dimension.

    >>> shapes = [(6, 5), (5,), (5,), (5,), (5,)]
    >>> spec = OpSpec("stablehlo.batch_norm_inference", shapes, [(6, 5)], {"feature_index": 1})
    >>> print(batch_norm_inference(spec, False))
    <([i, j], [j], [j], [j], [j])->([i, j]) {i=6, j=5}>
    """
    builder = builder_of(spec)
    (result,) = builder.results
    for dim, size in enumerate(spec.operand(0)):
        vectors = builder.operands[1:] if dim == spec.attr("feature_index") else ()
        builder.factor(size, [(0, dim), (result, dim), *((vector, 0) for vector in vectors)])
    return builder.finish()
