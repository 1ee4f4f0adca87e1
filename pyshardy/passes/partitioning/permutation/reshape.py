"""Reshapes of dimensions that are not divisible.

Source: docs/semantics/partitioner.md#reshapes
"""

from __future__ import annotations

from pyshardy.core.axes import Axes, AxisRef, append_or_merge
from pyshardy.core.sharding import TensorSharding, is_plain
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.shardings import get_sharding
from pyshardy.passes.partitioning.op_reshards import reshard_around
from pyshardy.passes.partitioning.permutation.exchange import Exchange, exchange, listed_start
from pyshardy.passes.partitioning.permutation.resolver import Resolver
from pyshardy.passes.partitioning.permutation.site import Body, Site
from pyshardy.reshard.reshape_halo import (
    Reshape,
    SplitHalo,
    exchanged_axes,
    is_free_reshape,
    replicated_groups,
    split_halos,
    without_axes,
)


def resolve_reshape(op: Op, resolver: Resolver) -> bool:
    """Let a reshape find on every device what its shard is made of; all of it where both sides have other axes."""
    site = resolver.site(op)
    if site is not None:
        _resolve(site, resolver.options.enable_halo_exchange)
    return True


def _resolve(site: Site, enable_halo_exchange: bool) -> None:
    out_sharding = get_sharding(site.op.result)
    if is_plain(site.sharding, ignore_unreduced=True) and is_plain(out_sharding, ignore_unreduced=True):
        return
    if out_sharding is None or _ordered_axes(site, site.sharding) != _ordered_axes(site, out_sharding):
        reshard_around(site.op, (_replicated(site.sharding), out_sharding and _replicated(out_sharding)))
        return
    reshape = Reshape(site.shape, site.out_shape, site.sharding, out_sharding, site.mesh)
    if is_free_reshape(reshape):
        return
    halos = split_halos(reshape) if enable_halo_exchange else None
    if halos:
        _emit(site, reshape, halos)
        return
    before, after = replicated_groups(reshape)
    value = site.op.operands[0]
    gathered = site.builder().op("sdy.reshard", [value], [value.type], {"sharding": before})
    site.op.set_operand(0, gathered.result)
    reshard_around(site.op, (None, after))


def _replicated(sharding: TensorSharding) -> TensorSharding:
    return without_axes(sharding, set(range(sharding.rank)))


def _ordered_axes(site: Site, sharding: TensorSharding) -> Axes:
    merged: list[AxisRef] = []
    for dim in sharding.dims:
        for axis in dim.axes:
            append_or_merge(merged, axis, site.mesh)
    return tuple(merged)


def _emit(site: Site, reshape: Reshape, halos: list[SplitHalo]) -> None:
    padding = site.zero()
    value = site.aligned(site.zero)
    axes, out_sharding = exchanged_axes(reshape), reshape.out_sharding
    out_type = site.padded_type(out_sharding)
    out_local = site.local_shape(out_type.shape or (), out_sharding, axes)

    def fill(body: Body, args: list[Value]) -> Value:
        local = args[0]
        for halo in halos:
            axes_in_grid = sum((out_sharding.dims[dim].axes for dim in halo.out_dims), ())
            wanted = Exchange(halo.dim, axes_in_grid, halo.left, halo.right, halo.size, listed_start(halo.offsets))
            local = exchange(body, local, args[1], wanted)
        return body.marked(out_sharding).reshape(local, out_local)

    shardings = [site.sharding, TensorSharding(site.sharding.mesh)]
    site.replace(site.manual([value, padding], shardings, out_sharding, out_type, axes, fill), out_sharding)
