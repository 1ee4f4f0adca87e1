"""`dynamic_update_slice` into a sharded tensor.

Source: docs/semantics/partitioner.md#dynamic-update-slices
"""

from __future__ import annotations

from pyshardy.core.mesh import Mesh
from pyshardy.ir.constants import constant_integer
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op, Value
from pyshardy.transforms.builder import Builder
from pyshardy.transforms.local.bounds import wide_enough
from pyshardy.transforms.local.localizer import Localizer
from pyshardy.transforms.local.slicing import check_same_axes, mismatch


def localize_dynamic_update_slice(op: Op, local: Localizer) -> None:
    """Every device updates the elements in its shard; dimensions that are updated whole need no change."""
    operand, update, *starts = op.operands
    dims = _checked_partial_dims(op, local)
    if not dims:
        local.keep(op)
        return
    for dim in dims:
        _check_fits(op, dim, local)
    sharding = local.sharding(operand)
    assert sharding is not None
    mesh = local.mesh(sharding)
    builder = local.builder(op)
    indices, owned = local.values(starts), []
    for dim in dims:
        is_owned, indices[dim] = _index(op, dim, builder, mesh, local)
        owned.append(is_owned)
    if len({index.type for index in indices}) > 1:
        indices = [builder.convert(index, "i64") for index in indices]
    value = local.value(operand)
    updated = builder.value("dynamic_update_slice", [value, local.value(update), *indices], value.type)
    all_owned = owned[0]
    for other in owned[1:]:
        all_owned = builder.combine("and", all_owned, other)
    mask = builder.broadcast(all_owned, value.type.shape or ())
    local.replace(op, [builder.select(mask, updated, value)])


def _checked_partial_dims(op: Op, local: Localizer) -> list[int]:
    """The sharded dimensions that are not updated whole; incompatible shardings are refused."""
    operand, update = op.operands[:2]
    check_same_axes(op, local.splitting_axes(operand), local.splitting_axes(op.result))
    shape, update_shape = local.global_shape(operand), local.global_shape(update)
    found = []
    counts = local.shard_counts(operand)
    for dim, (axes, update_axes) in enumerate(zip(local.splitting_axes(operand), local.splitting_axes(update))):
        if shape[dim] == update_shape[dim]:
            if axes != update_axes:
                raise mismatch(op, dim, axes, update_axes)
            continue
        if update_axes:
            raise PassError(op, f"has an update that is sharded along dimension {dim} but covers only a part of it")
        if counts[dim] > 1:
            found.append(dim)
    return found


def _check_fits(op: Op, dim: int, local: Localizer) -> None:
    """Raise `PassError` if the updated elements along a dimension may be in several shards."""
    operand, update, *starts = op.operands
    size, update_size = local.global_shape(operand)[dim], local.global_shape(update)[dim]
    shard = (local.local_type_of(op, operand).shape or ())[dim]
    start = constant_integer(starts[dim])
    if update_size == 1:
        return
    if start is not None:
        start = min(max(start, 0), size - update_size)
        if start // shard == (start + update_size - 1) // shard:
            return
    raise PassError(
        op,
        f"updates {update_size} elements along dimension {dim}, which is sharded, that may be on several devices; "
        "replicate that dimension by a reshard first",
    )


def _index(op: Op, dim: int, builder: Builder, mesh: Mesh, local: Localizer) -> tuple[Value, Value]:
    """Whether this device has the updated elements along a dimension, and their index in its shard."""
    operand, update, *starts = op.operands
    size, update_size = local.global_shape(operand)[dim], local.global_shape(update)[dim]
    shard = (local.local_type_of(op, operand).shape or ())[dim]
    start = wide_enough(builder, local.value(starts[dim]), size)
    type = start.type
    zero, last = builder.splat("0", type), builder.splat(str(size - update_size), type)
    start = builder.value("clamp", [zero, start, last], type)
    offset = builder.dim_offset(local.dim_axes(operand)[dim], mesh, shard)
    offset = builder.convert(offset, type.element)
    end = builder.combine("add", start, builder.splat(str(update_size), type))
    shard_end = builder.combine("add", offset, builder.splat(str(shard), type))
    starts_here = builder.compare("GE", start, offset)
    ends_here = builder.compare("LE", end, shard_end)
    is_owned = builder.combine("and", starts_here, ends_here)
    inside = builder.combine("subtract", start, offset)
    return is_owned, builder.select(is_owned, inside, zero)
