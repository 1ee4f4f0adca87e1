"""Slices of sharded dimensions whose result is needed whole: slice first, then gather the smaller result."""

from __future__ import annotations

from math import prod

from pyshardy.core.collectives import CollectiveKind, sent_by_device
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of, shard_counts
from pyshardy.ir.dtypes import tensor_bytes
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.shardings import get_sharding, set_sharding
from pyshardy.reshard.moves import slice_move
from pyshardy.transforms.exchanges.exchanges import cut_whole_dims, replace
from pyshardy.transforms.exchanges.rounds import gather_line
from pyshardy.transforms.exchanges.sharded_op import Body, ShardedOp
from pyshardy.transforms.exchanges.window import changes_shards, windows_of
from pyshardy.transforms.reshards.op_reshards import insert_after
from pyshardy.transforms.reshards.operand_shardings import make_reshard

_ADDED = frozenset(
    ("f64", "f32", "f16", "bf16", "i1", "complex<f32>", "complex<f64>")
    + tuple(f"{sign}i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
)
"""Element types for which all platforms have a summing all-reduce."""


def slice_first(op: Op, meshes: Meshes) -> None:
    """Give the result of a `slice` the sharding of its operand and reshard it afterwards, if it has fewer shards."""
    before, after = get_sharding(op.operands[0]), get_sharding(op.result)
    if before is None or before.unreduced:
        return
    if after is None:
        after = TensorSharding.fully_replicated(before.mesh, before.rank)
    if after.unreduced or mesh_of(before, meshes) is not mesh_of(after, meshes):
        return
    pairs = list(zip(before.dim_axes, after.dim_axes))
    if before.dim_axes == after.dim_axes or not all(one == two or not two for one, two in pairs):
        return
    set_sharding(op.result, before)
    insert_after(make_reshard(op.result, after), op, op.result)


def slice_for_all(sharded: ShardedOp) -> bool:
    """Give every device all of a `slice` along the only dimension that moves. Return whether that was needed and done.

    It is done if a reshard needs the whole dimension, and if an all-reduce sends less than an exchange and a gather.
    """
    windows = windows_of(sharded)
    dims = [dim for dim, window in windows.items() if changes_shards(window) or window.size != window.out_size]
    element = sharded.op.result.type.element
    if (
        len(dims) != 1
        or element not in _ADDED
        or not any(_is_whole(user, dims[0]) for user in sharded.op.result.users())
    ):
        return False
    (dim,) = dims
    window = windows[dim]
    wanted, axes = slice_move(window), sharded.sharding.dim_axes[dim]
    rest = prod(
        -(-size // count) for size, count in zip(sharded.out_shape, shard_counts(sharded.sharding, sharded.mesh))
    )
    rest //= window.out_shard
    summed = tensor_bytes((rest, window.out_size), element)
    added = sent_by_device(CollectiveKind.ALL_REDUCE, summed, summed, window.shards)
    if added >= tensor_bytes((rest, wanted.sent + (window.shards - 1) * window.out_shard), element):
        return False

    def fill(body: Body, args: list[Value]) -> Value:
        return gather_line(body, cut_whole_dims(body, args[0], windows), dim, axes, wanted, window.out_size)

    after = sharded.sharding.with_dims(
        DimSharding(()) if index == dim else one for index, one in enumerate(sharded.sharding.dims)
    )
    old = get_sharding(sharded.op.result)
    assert old is not None
    others = [user for user in sharded.op.result.users() if not _is_whole(user, dim)]
    if others:
        same = make_reshard(sharded.op.result, old).insert_after(sharded.op)
        sharded.op.result.replace_uses(same.result, lambda user, _: user in others)
    replace(sharded, [sharded.aligned(sharded.zero)], [sharded.sharding], sharded.zero(), fill, after)
    return True


def _is_whole(user: Op, dim: int) -> bool:
    """Whether an op replicates a value along a dimension."""
    return user.name == "sdy.reshard" and not user.attrs["sharding"].dim_axes[dim]
