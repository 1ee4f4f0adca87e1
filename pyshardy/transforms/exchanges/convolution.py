"""Factors of convolutions to replicate although halos are exchanged: long kernels, groups of several elements."""

from __future__ import annotations

from typing import cast

from pyshardy.core.axis_lists import axes_size
from pyshardy.core.sharding_on_mesh import Meshes, common_mesh
from pyshardy.ir.constants import margins_of
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import get_sharding
from pyshardy.reshard.factors import project_tensors
from pyshardy.rules.dimension_numbers import ConvolutionNumbers
from pyshardy.rules.rule import Rule
from pyshardy.transforms.context import PassContext

_SPREADS = ("lhs_dilation", "rhs_dilation", "window_strides")


def whole_factors(op: Op, rule: Rule, context: PassContext) -> set[int]:
    """The factors of a convolution to replicate, besides permutation factors."""
    numbers = cast(ConvolutionNumbers, dict(context.specs.spec(op).attributes)["dimension_numbers"])
    found: set[int] = set()
    for index, dims in enumerate(zip(numbers.lhs_spatial, numbers.kernel_spatial, numbers.output_spatial)):
        lhs, kernel, output = (tensor[dim] for tensor, dim in zip(rule.tensors, dims))
        found.update(output)
        if lhs != kernel or not is_plain_contraction(op, index, *dims):
            found.update(lhs, kernel)
    return found | _grouped_factors(op, rule, numbers)


def is_plain_contraction(op: Op, index: int, lhs_dim: int, kernel_dim: int, output_dim: int) -> bool:
    """Whether a spatial dimension is a plain contraction: a single window that covers it element by element."""
    values = zip((*op.operands, op.result), (lhs_dim, kernel_dim, output_dim))
    lhs, kernel, output = ((value.type.shape or ())[dim] for value, dim in values)
    spread = any(op.attrs[name][index] != 1 for name in _SPREADS if name in op.attrs)
    reversal = op.attrs.get("window_reversal")
    is_reversed = reversal is not None and reversal[index]
    is_plain = (
        not spread and not is_reversed and not any(margins_of(op.attrs.get("padding"), op.result.type.rank - 2)[index])
    )
    return output == 1 and lhs == kernel and is_plain


def _grouped_factors(op: Op, rule: Rule, numbers: ConvolutionNumbers) -> set[int]:
    """The factors of grouped dimensions, unless every group has one input and one output element."""
    lhs, kernel = (value.type.shape or () for value in op.operands)
    outputs = kernel[numbers.kernel_output_feature]
    found: set[int] = set()
    for name, dim in (("feature_group_count", numbers.lhs_feature), ("batch_group_count", numbers.lhs_batch)):
        groups = op.attrs[name].value
        if groups > 1 and not lhs[dim] == outputs == groups:
            found.update(rule.operands[0][dim], rule.operands[1][numbers.kernel_output_feature])
            found.update(rule.results[0][numbers.output_feature])
    return found


def uneven_group_factors(op: Op, rule: Rule, numbers: ConvolutionNumbers, meshes: Meshes) -> set[int]:
    """The factors of grouped dimensions with a shard boundary inside a group, or with uneven shards of features.

    Args:
        op: The convolution.
        rule: Its rule.
        numbers: Its dimension numbers.
        meshes: The meshes of the module.
    """
    found = _grouped_factors(op, rule, numbers)
    shardings = [get_sharding(value) for value in (*op.operands, op.result)]
    on = common_mesh(shardings, meshes, ignore_device_order=True)
    if not found or on is None:
        return found
    states = project_tensors(rule, shardings, on[1])
    counts = [
        (rule.factor_sizes[factor], axes_size(state.factors[factor].axes, on[1]))
        for state in states
        for factor in found & state.factors.keys()
    ]
    return found if any(size % count for size, count in counts) else set()
