"""Products and convolutions.

Source: docs/semantics/partitioner.md#products-and-convolutions
"""

from __future__ import annotations

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import axes_size
from pyshardy.core.sharding import ReductionKind
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op
from pyshardy.transforms.local.checks import check_runs_locally
from pyshardy.transforms.local.localizer import Localizer
from pyshardy.transforms.local.partial_results import completed, in_mesh_order, is_marked, stays_partial
from pyshardy.transforms.reshards.kinds import kind_of

_CONVOLUTION = (
    "window_strides", "padding", "lhs_dilation", "rhs_dilation", "window_reversal", "dimension_numbers",
    "feature_group_count", "batch_group_count", "precision_config",
)  # fmt: skip
"""The attributes of a convolution, without its sharding."""


def localize_dot(op: Op, local: Localizer) -> None:
    """A product on shards. The result is partial along the axes of contracted dimensions."""
    kind = kind_of(op, local.global_types)
    if local.keep_like_others(op, kind):
        return
    check_runs_locally(op, local)
    left = op.operands[0]
    if op.name == "stablehlo.dot":
        contracted: tuple[int, ...] = (len(local.global_shape(left)) - 1,)
    else:
        contracted = local.context.specs.spec(op).attr("dot_dimension_numbers").lhs_contracting
    dims = local.dim_axes(left)
    axes = sum((dims[dim] for dim in contracted), ())
    if not axes or _is_marked_as_sum(op, axes, local):
        local.keep_for_kind(op, kind)
    else:
        _finish(op, axes, 0, local)


def _is_marked_as_sum(op: Op, axes: Axes, local: Localizer) -> bool:
    """Whether the result stays unreduced along the axes of the left operand."""
    left, sharding = local.sharding(op.operands[0]), local.sharding(op.result)
    assert left is not None
    is_sum = sharding is not None and sharding.reduction is ReductionKind.SUM
    return is_sum and is_marked(op.result, axes, local.mesh(left), local)


def localize_convolution(op: Op, local: Localizer) -> None:
    """A convolution on shards, with fewer groups. The result is partial along the axes of input features."""
    numbers = local.context.specs.spec(op).attr("dimension_numbers")
    left, kernel = map(local.dim_axes, op.operands)
    if not any(local.is_sharded(value) for value in (*op.operands, op.result)):
        local.keep(op)
        return
    check_runs_locally(op, local)
    _divide_groups(op, "feature_group_count", kernel[numbers.kernel_output_feature], 1, local)
    _divide_groups(op, "batch_group_count", left[numbers.lhs_batch], 0, local)
    reduced = tuple(
        dict.fromkeys(axis for dim in (numbers.kernel_input_feature, *numbers.kernel_spatial) for axis in kernel[dim])
    )
    _finish(op, reduced, 1, local)


def _divide_groups(op: Op, name: str, axes: Axes, operand: int, local: Localizer) -> None:
    count = op.attrs[name].value if name in op.attrs else 1
    sharding = local.sharding(op.operands[operand])
    shards = 1 if sharding is None else axes_size(axes, local.mesh(sharding))
    divisor = min(count, shards)
    if count % divisor:
        raise PassError(op, f"has {name} {count}, which {shards} shards do not divide")
    if divisor > 1:
        op.set_attr(name, local.attrs.i64(count // divisor))


def _finish(op: Op, axes: Axes, operand: int, local: Localizer) -> None:
    """Keep the op; all-reduce its result if it is partial along the axes of an operand."""
    names = _CONVOLUTION if op.name == "stablehlo.convolution" else op.attrs
    if not axes:
        local.keep_only(op, names)
        return
    sharding = local.sharding(op.operands[operand])
    assert sharding is not None
    axes = in_mesh_order(axes, sharding.mesh, local)
    is_partial = stays_partial(op, op.result, axes, ReductionKind.SUM, sharding.mesh, local)
    local.keep_only(op, names)
    if not is_partial:
        builder = local.builder_after(op)
        value = completed(op, builder, op.result, axes, ReductionKind.SUM, sharding.mesh, local)
        local.stand_in(op.result, value)
