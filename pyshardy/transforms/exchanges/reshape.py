"""Reshapes of dimensions that are not divisible.

Source: docs/semantics/partitioner.md#reshapes
"""

from __future__ import annotations

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.axis_lists import append_or_merge
from pyshardy.core.sharding import DimSharding, TensorSharding, is_unsharded
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.shardings import get_sharding
from pyshardy.reshard.reshape_halo import (
    Reshape,
    SplitHalo,
    exchanged_axes,
    is_free_reshape,
    replicated_groups,
    split_halos,
)
from pyshardy.transforms.exchanges.exchange import Exchange, exchange, listed_start
from pyshardy.transforms.exchanges.resolver import Resolver
from pyshardy.transforms.exchanges.sharded_op import Body, ShardedOp
from pyshardy.transforms.reshards.op_reshards import reshard_around


def resolve_reshape(op: Op, resolver: Resolver) -> bool:
    """Give every device the data for its shard of a reshape; replicate where the two sides have different axes."""
    before, after = get_sharding(op.operands[0]), get_sharding(op.result)
    if before is None and after is not None and not is_unsharded(after, ignore_unreduced=True):
        reshard_around(op, (None, _replicated(after)))
    elif (sharded := resolver.sharded(op)) is not None:
        _resolve(sharded, resolver.options.enable_halo_exchange)
    return True


def _resolve(sharded: ShardedOp, enable_halo_exchange: bool) -> None:
    out_sharding = get_sharding(sharded.op.result)
    if is_unsharded(sharded.sharding, ignore_unreduced=True) and is_unsharded(out_sharding, ignore_unreduced=True):
        return
    if out_sharding is None or _ordered_axes(sharded, sharded.sharding) != _ordered_axes(sharded, out_sharding):
        reshard_around(sharded.op, (_replicated(sharded.sharding), out_sharding and _replicated(out_sharding)))
        return
    reshape = Reshape(sharded.shape, sharded.out_shape, sharded.sharding, out_sharding, sharded.mesh)
    if is_free_reshape(reshape):
        return
    halos = split_halos(reshape) if enable_halo_exchange else None
    if halos:
        _emit(sharded, reshape, halos)
        return
    before, after = replicated_groups(reshape)
    value = sharded.op.operands[0]
    gathered = sharded.builder().op("sdy.reshard", [value], [value.type], {"sharding": before})
    sharded.op.set_operand(0, gathered.result)
    reshard_around(sharded.op, (None, after))


def _replicated(sharding: TensorSharding) -> TensorSharding:
    return sharding.with_dims([DimSharding()] * sharding.rank)


def _ordered_axes(sharded: ShardedOp, sharding: TensorSharding) -> Axes:
    merged: list[AxisRef] = []
    for dim in sharding.dims:
        for axis in dim.axes:
            append_or_merge(merged, axis, sharded.mesh)
    return tuple(merged)


def _emit(sharded: ShardedOp, reshape: Reshape, halos: list[SplitHalo]) -> None:
    padding = sharded.zero()
    value = sharded.aligned(sharded.zero)
    axes, out_sharding = exchanged_axes(reshape), reshape.out_sharding
    out_type = sharded.padded_type(out_sharding)
    out_local = sharded.local_shape(out_type.shape or (), out_sharding, axes)

    def fill(body: Body, args: list[Value]) -> Value:
        local = args[0]
        for halo in halos:
            axes_in_grid = sum((out_sharding.dims[dim].axes for dim in halo.out_dims), ())
            wanted = Exchange(halo.dim, axes_in_grid, halo.left, halo.right, halo.size, listed_start(halo.offsets))
            local = exchange(body, local, args[1], wanted)
        return body.marked(out_sharding).reshape(local, out_local)

    shardings = [sharded.sharding, TensorSharding(sharded.sharding.mesh)]
    sharded.replace(sharded.manual([value, padding], shardings, out_sharding, out_type, axes, fill), out_sharding)
