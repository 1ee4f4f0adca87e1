"""Dimensions of size 1 of convolutions and reshapes. Rules have no factor for them, so nothing else reshards them.

If such a dimension is sharded, all shards but one are padding, which would get into the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from pyshardy.core.axes import Axes
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.shardings import get_sharding
from pyshardy.rules.dimension_numbers import ConvolutionNumbers
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.reshards.op_reshards import reshard_around

WITH_SINGLE_DIMS = frozenset(("stablehlo.convolution", "stablehlo.reshape"))
"""The ops with such dimensions."""


def share_single_dims(op: Op, context: PassContext) -> bool:
    """Replicate dimensions of size 1 whose axes differ between operands and results; return whether there were any.

    Args:
        op: A convolution or a reshape; other ops are left alone.
        context: The pass context.
    """
    if op.name not in WITH_SINGLE_DIMS:
        return False
    values = [*op.operands, op.result]
    dims = _of_convolution(op, values, context) if len(values) == 3 else _of_reshape(values)
    targets = [_without(value, whole) for value, whole in zip(values, dims)]
    if any(targets):
        reshard_around(op, targets)
    return any(targets)


def _of_convolution(op: Op, values: Sequence[Value], context: PassContext) -> list[list[int]]:
    """Per tensor, the batch and feature dimensions to replicate."""
    numbers = cast(ConvolutionNumbers, dict(context.specs.spec(op).attributes)["dimension_numbers"])
    dims: list[list[int]] = [[], [], []]
    for operand, dim, out_dim in (
        (0, numbers.lhs_batch, numbers.output_batch),
        (1, numbers.kernel_output_feature, numbers.output_feature),
    ):
        if (op.result.type.shape or ())[out_dim] != 1:
            continue
        if (values[operand].type.shape or ())[dim] != 1:  # a batch that groups make one of
            dims[2].append(out_dim)
        elif _axes_of(values[operand], dim) != _axes_of(op.result, out_dim):
            dims[operand].append(dim)
            dims[2].append(out_dim)
    return dims


def _of_reshape(values: Sequence[Value]) -> list[list[int]]:
    """Per tensor of a reshape, the dimensions of size 1 to replicate."""
    dims = [[dim for dim, size in enumerate(value.type.shape or ()) if size == 1] for value in values]
    before, after = ([axes for dim in found if (axes := _axes_of(value, dim))] for value, found in zip(values, dims))
    return [[], []] if before == after else dims


def _axes_of(value: Value, dim: int) -> Axes:
    sharding = get_sharding(value)
    return () if sharding is None or not sharding.dims else sharding.dims[dim].axes


def _without(value: Value, dims: Sequence[int]) -> TensorSharding | None:
    """The sharding of a value with these dimensions replicated; None if they are."""
    sharding = get_sharding(value)
    if sharding is None or not any(_axes_of(value, dim) for dim in dims):
        return None
    return sharding.with_dims([DimSharding() if at in dims else dim for at, dim in enumerate(sharding.dims)])
