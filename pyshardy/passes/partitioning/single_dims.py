"""Dimensions of size 1 of convolutions: their rules tie these to nothing, so nothing else reshards them.

Of such a dimension that is sharded all shards but one are padding, and a convolution would have it in its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from pyshardy.core.axes import Axes
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.shardings import get_sharding
from pyshardy.passes.base import PassContext
from pyshardy.passes.partitioning.op_reshards import reshard_around
from pyshardy.rules.dimension_numbers import ConvolutionNumbers


def share_single_dims(op: Op, context: PassContext) -> None:
    """Keep batch and features of size 1 whole where operand and result are not sharded alike.

    Args:
        op: A convolution.
        context: The pass context.
    """
    numbers = cast(ConvolutionNumbers, dict(context.specs.spec(op).attributes)["dimension_numbers"])
    values = [*op.operands, op.result]
    dims: list[list[int]] = [[], [], []]
    for operand, dim, out_dim in (
        (0, numbers.lhs_batch, numbers.output_batch),
        (1, numbers.kernel_output_feature, numbers.output_feature),
    ):
        places = [(operand, dim), (2, out_dim)]
        if all((values[place].type.shape or ())[at] == 1 for place, at in places):
            axes = [_axes_of(values[place], at) for place, at in places]
            if axes[0] != axes[1]:
                for place, at in places:
                    dims[place].append(at)
    targets = [_without(value, whole) for value, whole in zip(values, dims)]
    if any(targets):
        reshard_around(op, targets)


def _axes_of(value: Value, dim: int) -> Axes:
    sharding = get_sharding(value)
    return () if sharding is None or not sharding.dims else sharding.dims[dim].axes


def _without(value: Value, dims: Sequence[int]) -> TensorSharding | None:
    """The sharding of a value with these dimensions whole; None if they are."""
    sharding = get_sharding(value)
    if sharding is None or not any(_axes_of(value, dim) for dim in dims):
        return None
    return sharding.with_dims([DimSharding() if at in dims else dim for at, dim in enumerate(sharding.dims)])
