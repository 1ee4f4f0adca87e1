"""Lowers collectives of the sdy dialect to collectives of StableHLO.

Source: docs/semantics/partitioner.md#collectives
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import axes_size, join_axes
from pyshardy.core.devices import permutation, shard_indices
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import ReductionKind, TensorSharding
from pyshardy.errors import InvalidShardingError
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op, Value
from pyshardy.transforms.builder import Builder
from pyshardy.transforms.local.groups import Collectives
from pyshardy.transforms.local.identity import reduction_identity
from pyshardy.transforms.local.localizer import Localizer
from pyshardy.transforms.reshards.operand_shardings import all_reduce_kind

_NOOP = "does nothing; canonicalize{enable-patterns=sdy-collective} removes such ops"


def lower_all_gather(op: Op, local: Localizer) -> None:
    """One all-gather for all dimensions, or one per dimension, the last one first."""
    per_dim: tuple[Axes, ...] = op.attrs["gathering_axes"]
    gathered = [dim for dim, axes in enumerate(per_dim) if axes]
    if not gathered:
        raise PassError(op, _NOOP)
    builder = local.builder(op)
    collectives = Collectives(local, builder, _out_sharding(op).mesh)
    value = local.value(op.operands[0])
    if len(gathered) == 1 or local.options.per_dim_all_gather:
        for dim in reversed(gathered):
            value = collectives.all_gather(value, per_dim[dim], dim)
    else:
        value = _gather_at_once(collectives, value, gathered, per_dim)
    local.replace(op, [value])


def _gather_at_once(collectives: Collectives, value: Value, gathered: Sequence[int], per_dim: Sequence[Axes]) -> Value:
    """Gather along a new leading dimension, then move its factors before the dimensions that they belong to."""
    builder, shape = collectives.builder, value.type.shape or ()
    factors = [axes_size(per_dim[dim], collectives.mesh) for dim in gathered]
    value = builder.reshape(value, (1, *shape))
    value = collectives.all_gather(value, join_axes((per_dim[dim] for dim in gathered), collectives.mesh), 0)
    value = builder.reshape(value, (*factors, *shape))
    order: list[int] = []
    for dim in range(len(shape)):
        order += [gathered.index(dim)] if dim in gathered else []
        order.append(len(gathered) + dim)
    value = builder.transpose(value, order)
    sizes = dict(zip(gathered, factors))
    return builder.reshape(value, [size * sizes.get(dim, 1) for dim, size in enumerate(shape)])


def lower_all_reduce(op: Op, local: Localizer) -> None:
    """`sdy.all_reduce`: an all-reduce of StableHLO."""
    if op.operands[0] in local.complete:
        local.replace(op, local.values(op.operands))
        return
    collectives = Collectives(local, local.builder(op), _out_sharding(op).mesh)
    kind = all_reduce_kind(op)
    value = collectives.all_reduce(local.value(op.operands[0]), op.attrs["reduction_axes"], kind)
    local.replace(op, [value])


def lower_all_slice(op: Op, local: Localizer) -> None:
    """`sdy.all_slice`: every device slices out its part."""
    mesh = local.mesh(_out_sharding(op))
    shape = local.local_type_of(op, op.result).shape or ()
    value = local.value(op.operands[0])
    local.replace(op, [slice_along(local.builder(op), value, op.attrs["slicing_axes"], mesh, shape)])


def slice_along(builder: Builder, value: Value, per_dim: Iterable[Axes], mesh: Mesh, shape: Sequence[int]) -> Value:
    """The shard of a value along the axes of every dimension; `shape` is the shape of a shard."""
    return builder.dynamic_slice(value, offsets(builder, per_dim, mesh, shape), shape)


def offsets(builder: Builder, per_dim: Iterable[Axes], mesh: Mesh, shape: Sequence[int]) -> list[Value]:
    """The start of a device's shard in every dimension."""
    scalar = builder.type((), "i32")
    return [
        builder.dim_offset(axes, mesh, size) if axes else builder.splat("0", scalar)
        for axes, size in zip(per_dim, shape)
    ]


def lower_collective_permute(op: Op, local: Localizer) -> None:
    """`sdy.collective_permute`: every device sends its shard to the device that needs it."""
    before, after = local.sharding(op.operands[0]), _out_sharding(op)
    if before is None:
        before = TensorSharding.fully_replicated(after.mesh, len(after.dims))
    if before == after:
        raise PassError(op, _NOOP)
    try:
        targets = permutation(before, local.mesh(before), after, local.mesh(after))
    except InvalidShardingError as error:
        raise PassError(op, str(error)) from error
    collectives = Collectives(local, local.builder(op), after.mesh)
    local.replace(op, [collectives.collective_permute(local.value(op.operands[0]), targets)])


def lower_reduce_scatter(op: Op, local: Localizer) -> None:
    """One reduce-scatter; for several dimensions, perhaps an all-reduce and a slice."""
    per_dim: tuple[Axes, ...] = op.attrs["reduce_scatter_axes"]
    scattered = [dim for dim, axes in enumerate(per_dim) if axes]
    if not scattered:
        raise PassError(op, _NOOP)
    sharding = local.sharding(op.operands[0]) or _out_sharding(op)
    collectives = Collectives(local, local.builder(op), sharding.mesh)
    kind = all_reduce_kind(op)
    value = local.value(op.operands[0])
    if len(scattered) == 1:
        value = collectives.reduce_scatter(value, per_dim[scattered[0]], scattered[0], kind)
    elif local.options.combine_multi_dimension_reduce_scatter:
        value = _scatter_at_once(collectives, value, per_dim, kind)
    else:
        shape = local.local_type_of(op, op.result).shape or ()
        value = collectives.all_reduce(value, join_axes(per_dim, collectives.mesh), kind)
        value = slice_along(collectives.builder, value, per_dim, collectives.mesh, shape)
    local.replace(op, [value])


def _scatter_at_once(collectives: Collectives, value: Value, per_dim: Sequence[Axes], kind: ReductionKind) -> Value:
    """Move the scattered factors to the front, as one dimension that the collective scatters."""
    builder, shape = collectives.builder, value.type.shape or ()
    split: list[int] = []
    places: list[int] = []
    for size, axes in zip(shape, per_dim):
        if axes:
            places.append(len(split))
            split.append(axes_size(axes, collectives.mesh))
            size //= split[-1]
        split.append(size)
    rest = [place for place in range(len(split)) if place not in places]
    value = builder.transpose(builder.reshape(value, split), places + rest)
    axes = join_axes(per_dim, collectives.mesh)
    value = builder.reshape(value, (axes_size(axes, collectives.mesh), *(split[place] for place in rest)))
    value = collectives.reduce_scatter(value, axes, 0, kind)
    return builder.reshape(value, [split[place] for place in rest])


def lower_sharded_to_unreduced(op: Op, local: Localizer) -> None:
    """The shard of a device at its position, and the identity of the reduction elsewhere."""
    sharding, operand = _out_sharding(op), local.value(op.operands[0])
    builder = local.builder(op)
    type = local.local_type_of(op, op.result)
    rest = builder.splat(reduction_identity(op, sharding.reduction, type), type)
    starts = offsets(builder, op.attrs["axes"], local.mesh(sharding), operand.type.shape or ())
    local.replace(op, [builder.value("dynamic_update_slice", [rest, operand, *starts], type)])


def lower_replicated_to_unreduced(op: Op, local: Localizer) -> None:
    """The value on one device of every group, and the identity of the reduction on the others."""
    sharding = _out_sharding(op)
    value = local.value(op.operands[0])
    local.replace(op, [keep_on_leaders(op, local.builder(op), value, op.attrs["axes"], sharding, local)])


def keep_on_leaders(
    op: Op, builder: Builder, value: Value, axes: Axes, sharding: TensorSharding, local: Localizer
) -> Value:
    """The value on the first device of every group along the axes, and the identity of the reduction on the others."""
    is_first = leader(builder, axes, local.mesh(sharding))
    rest = builder.splat(reduction_identity(op, sharding.reduction, value.type), value.type)
    return builder.select(is_first, value, rest)


def leader(builder: Builder, axes: Axes, mesh: Mesh) -> Value:
    """Whether a device is the first in its group along the axes, as a scalar."""
    return builder.look_up([index == 0 for index in shard_indices(axes, mesh)], "i1")


def _out_sharding(op: Op) -> TensorSharding:
    found: TensorSharding = op.attrs["out_sharding"]
    return found
