"""Reshapes whose shard boundaries change, as rounds of collective-permutes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from pyshardy.core.axes import Axes
from pyshardy.core.devices import replica_groups, shard_indices
from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.nodes import Value
from pyshardy.ir.shardings import get_sharding
from pyshardy.reshard.moves import ShardMove, block_size, border_move, shard_blocks
from pyshardy.reshard.reshape_groups import GroupKind, ReshapeGroup
from pyshardy.reshard.reshape_halo import Reshape, is_free_group, is_free_reshape
from pyshardy.transforms.exchanges.rounds import move
from pyshardy.transforms.exchanges.sharded_op import Body, ShardedOp


class _Flat(NamedTuple):
    """A group of dimensions that moves as one dimension."""

    group: ReshapeGroup
    axes: Axes
    move: ShardMove


def exchange_borders(sharded: ShardedOp, limit: int | None) -> bool:
    """Exchange data for a `reshape`; return whether that was needed and done.

    Args:
        sharded: The op.
        limit: The most elements that a device may send; None for no limit.
    """
    out_sharding = get_sharding(sharded.op.result)
    assert out_sharding is not None
    reshape = Reshape(sharded.shape, sharded.out_shape, sharded.sharding, out_sharding, sharded.mesh)
    if is_free_reshape(reshape):
        return False
    flats = []
    for group in reshape.groups:
        if _stays(reshape, group):
            continue
        flat = _flat(reshape, group)
        if flat is None:
            return False
        flats.append(flat)
    if limit is not None and sum(flat.move.sent * _beside(reshape, flat) for flat in flats) >= limit:
        return False
    if flats:
        _emit(sharded, reshape, flats)
    return bool(flats)


def _stays(reshape: Reshape, group: ReshapeGroup) -> bool:
    """Whether every shard of a group has what it needs."""
    if group.kind is GroupKind.PASS_THROUGH:
        before = [reshape.sharding.dim_axes[dim] for dim in group.dims if reshape.shape[dim] != 1]
        after = [reshape.out_sharding.dim_axes[dim] for dim in group.out_dims if reshape.out_shape[dim] != 1]
        is_in_one_shard = any(reshape.shape[dim] == 1 < reshape.counts[dim] for dim in group.dims)
        return is_free_group(reshape, group) or (bool(before) and before == after and not is_in_one_shard)
    return reshape.is_divisible(group) and is_free_group(reshape, group)


def _sides(reshape: Reshape, group: ReshapeGroup) -> tuple[tuple[TensorSharding, tuple[int, ...]], ...]:
    return (reshape.sharding, group.dims), (reshape.out_sharding, group.out_dims)


def _flat(reshape: Reshape, group: ReshapeGroup) -> _Flat | None:
    """The move of a group; None if a shard is not a single interval of it, or if the two sides have different axes."""
    (before, dims), (after, out_dims) = _sides(reshape, group)
    if not dims or not out_dims:
        return None
    axes = sum((before.dim_axes[dim] for dim in dims), ())
    out_axes = sum((after.dim_axes[dim] for dim in out_dims), ())
    devices = replica_groups(axes, reshape.mesh)[0]
    if {frozenset(group) for group in replica_groups(axes, reshape.mesh)} != {
        frozenset(group) for group in replica_groups(out_axes, reshape.mesh)
    }:
        return None
    shape, counts = [reshape.shape[dim] for dim in dims], [reshape.counts[dim] for dim in dims]
    out_shape = [reshape.out_shape[dim] for dim in out_dims]
    out_counts = [reshape.out_counts[dim] for dim in out_dims]
    held, wanted = shard_blocks(shape, counts), shard_blocks(out_shape, out_counts)
    if held is None or wanted is None:
        return None
    out_indices = shard_indices(out_axes, reshape.mesh)
    wanted = [wanted[out_indices[device]] for device in devices]
    found = border_move(held, wanted, block_size(shape, counts), block_size(out_shape, out_counts))
    return _Flat(group, axes, found) if found.is_short else None


def _beside(reshape: Reshape, flat: _Flat) -> int:
    """The number of elements of a shard per position of a group."""
    sizes = [_ceil(size, count) for size, count in zip(reshape.shape, reshape.counts)]
    return prod(size for dim, size in enumerate(sizes) if dim not in flat.group.dims)


def _ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def _emit(sharded: ShardedOp, reshape: Reshape, flats: Sequence[_Flat]) -> None:
    out_sharding = reshape.out_sharding
    shardings = sharded.sharding, out_sharding
    names = {axis.name for sharding in shardings for axes in sharding.dim_axes for axis in axes}
    axes = tuple(name for name in sharded.mesh.axis_names if name in names)
    out_type = sharded.padded_type(out_sharding)
    out_local = sharded.local_shape(out_type.shape or (), out_sharding, axes)

    def fill(body: Body, args: list[Value]) -> Value:
        value, shift = args[0], 0
        for flat in flats:
            shape = list(value.type.shape or ())
            first = flat.group.dims[0] - shift
            end = first + len(flat.group.dims)
            shape[first:end] = [flat.move.size]
            shift += len(flat.group.dims) - 1
            value = move(body, body.plain.reshape(value, shape), args[1], first, flat.axes, flat.move)
        return body.plain.reshape(value, out_local)

    padding = sharded.zero()
    scalar = TensorSharding(sharded.sharding.mesh)
    value = sharded.manual(
        [sharded.aligned(sharded.zero), padding], [sharded.sharding, scalar], out_sharding, out_type, axes, fill
    )
    sharded.replace(value, out_sharding)
