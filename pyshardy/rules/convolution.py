"""Convolution: batch, windows, kernel and features, with at most one kind of groups.

Source: docs/semantics/rules.md#convolution
"""

from __future__ import annotations

from pyshardy.rules.aligned import builder_of
from pyshardy.rules.dimension_numbers import ConvolutionNumbers
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import FactorKind, Rule
from pyshardy.rules.rule_builder import RuleBuilder

_LHS, _KERNEL, _OUTPUT = range(3)


def convolution(spec: OpSpec, conservative: bool) -> Rule:
    """Windows exchange their borders and the input features are summed; conservatively, nothing spatial is sharded.

    >>> numbers = ConvolutionNumbers(0, 2, (1,), 1, 2, (0,), 0, 2, (1,))
    >>> facts = {"dimension_numbers": numbers, "batch_group_count": 1, "feature_group_count": 1}
    >>> spec = OpSpec("stablehlo.convolution", [(6, 32, 5), (3, 5, 10)], [(6, 32, 10)], facts)
    >>> print(convolution(spec, False))
    <([i, j, l], [k, l, m])->([i, j, m]) {i=6, j=32, k=3, l=5, m=10} reduction={l} permutation={j, k}>
    """
    builder = builder_of(spec)
    numbers: ConvolutionNumbers = spec.attr("dimension_numbers")
    batch_groups, feature_groups = spec.attr("batch_group_count"), spec.attr("feature_group_count")
    lhs_batch, lhs_feature = (_LHS, numbers.lhs_batch), (_LHS, numbers.lhs_feature)
    kernel_input, kernel_output = (_KERNEL, numbers.kernel_input_feature), (_KERNEL, numbers.kernel_output_feature)
    output_batch, output_feature = (_OUTPUT, numbers.output_batch), (_OUTPUT, numbers.output_feature)

    if batch_groups > 1:
        builder.factor(batch_groups, [lhs_batch, kernel_output, output_feature])
    builder.factor(_size(builder, output_batch), [lhs_batch, output_batch])
    if not conservative:
        for dims in zip(numbers.lhs_spatial, numbers.kernel_spatial, numbers.output_spatial):
            _add_spatial(builder, *dims)
    if feature_groups > 1:
        builder.factor(feature_groups, [lhs_feature, kernel_output, output_feature])
    builder.factor(_size(builder, kernel_input), [lhs_feature, kernel_input], FactorKind.REDUCTION)
    features_per_group = _size(builder, output_feature) // (batch_groups * feature_groups)
    if features_per_group > 1:
        builder.factor(features_per_group, [kernel_output, output_feature])
    return builder.finish()


def _size(builder: RuleBuilder, place: tuple[int, int]) -> int:
    value, dim = place
    return (builder.shapes[value] or ())[dim]


def _add_spatial(builder: RuleBuilder, lhs_dim: int, kernel_dim: int, output_dim: int) -> None:
    """Let the windows and the kernel share the input dimension, the larger of the two first."""
    left = _size(builder, (_LHS, lhs_dim))
    candidates = [
        ((_OUTPUT, output_dim), FactorKind.PERMUTATION),
        ((_KERNEL, kernel_dim), FactorKind.REDUCTION),
    ]
    candidates.sort(key=lambda candidate: -_size(builder, candidate[0]))
    for place, kind in candidates:
        size = _size(builder, place)
        shared = min(left, size)
        if shared > 1:
            builder.factor(shared, [(_LHS, lhs_dim), place], kind)
            left //= shared
        elif left == 1 and size > 1:
            builder.factor(size, [place], FactorKind.PERMUTATION)
