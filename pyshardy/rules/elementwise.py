"""Ops that treat every position alike: pointwise ops, clamp, select, normalisation with given statistics."""

from __future__ import annotations

from pyshardy.rules.aligned import aligned_rule, draft_of
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import Rule


def pointwise(spec: OpSpec, conservative: bool) -> Rule | None:
    """One pass-through factor per dimension of the first result; a value of smaller rank has the leading ones.

    None if the first result has no dimensions to speak of (a token), or if some value has a larger rank.

    >>> print(pointwise(OpSpec("stablehlo.add", [(6, 1), (6, 1)], [(6, 1)]), False))
    <([i, j], [i, j])->([i, j]) {i=6, j=1}>
    """
    if not spec.result_shapes or spec.result_shapes[0] is None:
        return None
    sizes = spec.result_shapes[0]
    if any(len(shape) > len(sizes) for shape in spec.operand_shapes + spec.result_shapes if shape):
        return None
    dims = [(dim,) for dim in range(len(sizes))]
    operands = [dims[: len(shape or ())] for shape in spec.operand_shapes]
    results = [dims[: len(shape or ())] for shape in spec.result_shapes]
    return Rule(sizes, operands, results)


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
    draft = draft_of(spec)
    (result,) = draft.results
    for dim, size in enumerate(spec.operand(0)):
        vectors = draft.operands[1:] if dim == spec.attr("feature_index") else ()
        draft.factor(size, [(0, dim), (result, dim), *((vector, 0) for vector in vectors)])
    return draft.finish()
