"""Pads, slices and reversals whose result shards come from several operand shards, as rounds of collective-permutes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from pyshardy.core.axes import Axes
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import shard_counts
from pyshardy.ir.nodes import Value
from pyshardy.reshard.moves import ShardMove, pad_move, reverse_move, slice_move
from pyshardy.transforms.exchanges.edges import free_dims
from pyshardy.transforms.exchanges.rounds import move
from pyshardy.transforms.exchanges.sharded_op import Body, FillBody, ShardedOp
from pyshardy.transforms.exchanges.window import changes_shards, windows_of

Moves = Mapping[int, ShardMove]
"""The moves of dimensions, in the order in which they are done."""


def exchange_window(sharded: ShardedOp) -> bool:
    """Exchange data for a `pad` or `slice`; return whether that was needed and done."""
    windows = windows_of(sharded)
    if free_dims(sharded.op, shard_counts(sharded.sharding, sharded.mesh)).issuperset(windows):
        return False
    is_pad = sharded.op.name == "stablehlo.pad"
    moves = {
        dim: pad_move(window) if is_pad else slice_move(window)
        for dim, window in windows.items()
        if changes_shards(window)
    }
    if not _are_short(moves):
        return False

    def fill(body: Body, args: list[Value]) -> Value:
        local = args[0] if is_pad else cut_whole_dims(body, args[0], windows)
        local = moved(body, local, args[1], moves)
        return _padded(body, local, args[1], windows) if is_pad else local

    padding = sharded.op.operands[1] if is_pad else sharded.zero()
    replace(sharded, [sharded.aligned(lambda: padding)], [sharded.sharding], padding, fill)
    return True


def exchange_reverse(sharded: ShardedOp) -> bool:
    """Exchange data for a `reverse` of uneven dimensions; return whether that was needed and done."""
    counts = shard_counts(sharded.sharding, sharded.mesh)
    dims = tuple(sharded.op.attrs["dimensions"])
    split_dims = [dim for dim in dims if counts[dim] > 1]
    if not any(sharded.shape[dim] % counts[dim] for dim in split_dims):
        return False
    moves = {dim: reverse_move(sharded.shape[dim], counts[dim]) for dim in split_dims}

    def fill(body: Body, args: list[Value]) -> Value:
        builder = body.plain
        reversed_ = builder.value("reverse", [args[0]], args[0].type, dimensions=builder.array(dims))
        return moved(body, reversed_, args[1], moves)

    replace(sharded, [sharded.aligned(sharded.zero)], [sharded.sharding], sharded.zero(), fill)
    return True


def _are_short(moves: Moves) -> bool:
    return all(one.is_short for one in moves.values())


def replace(
    sharded: ShardedOp,
    values: Sequence[Value],
    shardings: Sequence[TensorSharding],
    padding: Value,
    fill: FillBody,
    out_sharding: TensorSharding | None = None,
) -> None:
    """Replace the op by a manual computation on all axes. The result gets the sharding of the operand."""
    out_sharding = out_sharding or sharded.sharding
    names = {axis.name for axes in sharded.sharding.dim_axes for axis in axes}
    axes = tuple(name for name in sharded.mesh.axis_names if name in names)
    scalar = TensorSharding(sharded.sharding.mesh)
    out_type = sharded.padded_type(out_sharding)
    result = sharded.manual([*values, padding], [*shardings, scalar], out_sharding, out_type, axes, fill)
    sharded.replace(result, out_sharding)


def moved(body: Body, value: Value, padding: Value, moves: Moves) -> Value:
    """Apply some moves to a value, inside a manual computation."""
    for dim, one in moves.items():
        value = move(body, value, padding, dim, _axes(body, dim), one)
    return value


def sent_in_moves(sharded: ShardedOp, moves: Moves) -> int:
    """The number of elements that every device sends; the other dimensions have the sizes of the result."""
    counts = shard_counts(sharded.sharding, sharded.mesh)
    shape = [-(-size // count) for size, count in zip(sharded.out_shape, counts)]
    return sum(one.sent * prod(shape) // shape[dim] for dim, one in moves.items())


def _axes(body: Body, dim: int) -> Axes:
    return body.sharded.sharding.dim_axes[dim]


def cut_whole_dims(body: Body, value: Value, windows: Mapping[int, object]) -> Value:
    """The value, sliced along the dimensions that are not sharded."""
    op, shape = body.sharded.op, value.type.shape or ()
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    for dim in range(len(shape)):
        if dim not in windows:
            starts[dim], limits[dim] = op.attrs["start_indices"][dim], op.attrs["limit_indices"][dim]
            strides[dim] = op.attrs["strides"][dim]
    is_whole = not any(starts) and limits == list(shape) and set(strides) <= {1}
    return value if is_whole else body.plain.slice(value, starts, limits, strides)


def _padded(body: Body, value: Value, padding: Value, windows: Mapping[int, object]) -> Value:
    """The value, padded along the dimensions that are not sharded."""
    attrs = body.sharded.op.attrs
    low, high, interior = (
        [0 if dim in windows else number for dim, number in enumerate(attrs[name])]
        for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
    )
    return body.plain.pad(value, padding, low, high, interior) if any((*low, *high, *interior)) else value
