"""`pad` and `slice` of sharded dimensions.

Source: docs/semantics/partitioner.md#halo-exchange
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyshardy.core.axes import Axes
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import shard_counts
from pyshardy.ir.nodes import Op, Value
from pyshardy.reshard.halo import Halo, Window, halo_of, is_free_slice
from pyshardy.transforms.exchanges.edges import window_edges
from pyshardy.transforms.exchanges.exchange import Exchange, exchange, linear_start
from pyshardy.transforms.exchanges.sharded_op import Body, ShardedOp

if TYPE_CHECKING:
    from pyshardy.transforms.exchanges.resolver import Resolver


def resolve_window(op: Op, resolver: Resolver) -> bool:
    """Exchange halos for a `pad` or `slice`; return False if that is not allowed, or the data is too far away."""
    if not resolver.may_exchange(op):
        return False
    sharded = resolver.sharded(op)
    return sharded is None or _resolve(sharded)


def _resolve(sharded: ShardedOp) -> bool:
    if sharded.sharding.is_fully_replicated or not (
        sharded.op.result.type.is_static and sharded.op.operands[0].type.is_static
    ):
        return True
    windows = windows_of(sharded)
    halos = {dim: halo_of(window) for dim, window in windows.items() if not window.is_whole_slice}
    if not any(_is_needed(sharded.op, windows[dim], halo) for dim, halo in halos.items()):
        return True
    if None in halos.values():
        return False
    wanted = [
        _exchange(dim, sharded.sharding.dims[dim].axes, windows[dim], halo)
        for dim, halo in halos.items()
        if halo is not None and (_is_needed(sharded.op, windows[dim], halo) or changes_shards(windows[dim]))
    ]
    _emit(sharded, wanted, windows)
    return True


def windows_of(sharded: ShardedOp) -> dict[int, Window]:
    """The sharded dimensions of a `pad` or `slice`."""
    edges, counts = window_edges(sharded.op), shard_counts(sharded.sharding, sharded.mesh)
    return {
        dim: Window(
            sharded.shape[dim],
            sharded.out_shape[dim],
            count,
            edges.low[dim],
            edges.interior[dim] + 1,
            edges.strides[dim] if sharded.out_shape[dim] > 1 else 1,
        )
        for dim, count in enumerate(counts)
        if count > 1
    }


def _is_needed(op: Op, window: Window, halo: Halo | None) -> bool:
    if halo is None or halo.moves:
        return True
    return op.name == "stablehlo.slice" and not is_free_slice(
        window.size, window.out_size, -window.low, window.stride, window.shards
    )


def changes_shards(window: Window) -> bool:
    """Whether a shard of the output differs from that of the input."""
    return window.low != 0 or window.dilation != 1 or window.stride != 1 or window.shard != window.out_shard


def _exchange(dim: int, axes: Axes, window: Window, halo: Halo) -> Exchange:
    start = linear_start(halo.slope, halo.offset)
    return Exchange(dim, axes, halo.left, halo.right, halo.footprint, start, window.dilation, window.stride)


def _emit(sharded: ShardedOp, wanted: list[Exchange], windows: dict[int, Window]) -> None:
    is_pad = sharded.op.name == "stablehlo.pad"
    value = sharded.aligned((lambda: sharded.op.operands[1]) if is_pad else sharded.zero)
    padding = sharded.op.operands[1] if is_pad else sharded.zero()
    names = {axis.name for dim in windows for axis in sharded.sharding.dims[dim].axes}
    axes = tuple(name for name in sharded.mesh.axis_names if name in names)
    scalar = TensorSharding(sharded.sharding.mesh)

    def fill(body: Body, args: list[Value]) -> Value:
        local = args[0]
        for one in wanted:
            local = exchange(body, local, args[1], one)
        return _local_pad(body, local, args[1]) if is_pad else _local_slice(body, local, windows)

    result = sharded.manual(
        [value, padding],
        [sharded.sharding, scalar],
        sharded.sharding,
        sharded.padded_type(sharded.sharding),
        axes,
        fill,
    )
    sharded.replace(result, sharded.sharding)


def _local_pad(body: Body, value: Value, padding: Value) -> Value:
    """Pad the dimensions that are not sharded."""
    op, counts = body.sharded.op, shard_counts(body.sharded.sharding, body.sharded.mesh)
    low, high, interior = (
        [number if count <= 1 else 0 for number, count in zip(op.attrs[name], counts)]
        for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
    )
    return body.marked().pad(value, padding, low, high, interior) if any((*low, *high, *interior)) else value


def _local_slice(body: Body, value: Value, windows: dict[int, Window]) -> Value:
    """Slice the dimensions that are not sharded, and those in which every shard keeps every n-th element."""
    op, shape = body.sharded.op, list(value.type.shape or ())
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    for dim in range(len(shape)):
        if dim not in windows:
            starts[dim], limits[dim] = op.attrs["start_indices"][dim], op.attrs["limit_indices"][dim]
        if dim not in windows or windows[dim].is_whole_slice:
            strides[dim] = op.attrs["strides"][dim]
    is_whole = not any(starts) and limits == shape and set(strides) <= {1}
    return value if is_whole else body.marked().slice(value, starts, limits, strides)
