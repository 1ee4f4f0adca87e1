"""Ops whose shards of the result come from several shards of the operands, made of rounds of permutations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyshardy.core.axes import Axes
from pyshardy.core.sharding import DimSharding, TensorSharding, mesh_of, shard_counts
from pyshardy.ir.functions import SHARDING
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.shardings import Meshes, get_sharding
from pyshardy.passes.partitioning.meeting import make_reshard
from pyshardy.passes.partitioning.permutation.rounds import move
from pyshardy.passes.partitioning.permutation.site import Body, Fill, Site
from pyshardy.passes.partitioning.permutation.window import changes, free_dims, windows_of
from pyshardy.reshard.moves import Move, join_move, pad_move, reverse_move, slice_move

Moves = Mapping[int, Move]
"""The moves of dimensions, in the order in which they are done."""


def exchange_window(site: Site) -> bool:
    """Let the shards of a `pad` or `slice` get what they need; whether that was needed, and done."""
    windows = windows_of(site)
    if free_dims(site.op, shard_counts(site.sharding, site.mesh)).issuperset(windows):
        return False
    is_pad = site.op.name == "stablehlo.pad"
    moves = {
        dim: pad_move(window) if is_pad else slice_move(window) for dim, window in windows.items() if changes(window)
    }
    if not _are_short(moves):
        return False

    def fill(body: Body, args: list[Value]) -> Value:
        local = args[0] if is_pad else _sliced(body, args[0], windows)
        local = _moved(body, local, args[1], moves)
        return _padded(body, local, args[1], windows) if is_pad else local

    padding = site.op.operands[1] if is_pad else site.zero()
    _replace(site, [site.aligned(lambda: padding)], [site.sharding], padding, fill)
    return True


def exchange_reverse(site: Site) -> bool:
    """Let the shards of a `reverse` of uneven dimensions get what they need; whether that was needed, and done."""
    counts = shard_counts(site.sharding, site.mesh)
    dims = tuple(site.op.attrs["dimensions"])
    sharded = [dim for dim in dims if counts[dim] > 1]
    if not any(site.shape[dim] % counts[dim] for dim in sharded):
        return False
    moves = {dim: reverse_move(site.shape[dim], counts[dim]) for dim in sharded}

    def fill(body: Body, args: list[Value]) -> Value:
        builder = body.plain
        reversed_ = builder.value("reverse", [args[0]], args[0].type, dimensions=builder.array(dims))
        return _moved(body, reversed_, args[1], moves)

    _replace(site, [site.aligned(site.zero)], [site.sharding], site.zero(), fill)
    return True


def exchange_join(site: Site, meshes: Meshes) -> bool:
    """Let the shards of a `concatenate` along a sharded dimension get what they need; whether that was done."""
    op, dim = site.op, site.op.attrs["dimension"].value
    count = shard_counts(site.sharding, site.mesh)[dim]
    if count <= 1:
        return False
    whole = whole_operands(op, dim, site.sharding, meshes)
    sizes = [(value.type.shape or ())[dim] for value in op.operands]
    wanted = join_move(sizes, count, tuple(value is not None for value in whole))
    if not wanted.is_short:
        return False
    open_dim = site.sharding.with_dims(
        DimSharding(()) if index == dim else one for index, one in enumerate(site.sharding.dims)
    )
    values, shardings = [], []
    for index, found in enumerate(whole):
        sharding = site.sharding if found is None else open_dim
        value = op.operands[index] if found is None else _with_sharding(site, found, open_dim, meshes)
        values.append(site.aligned(site.zero, value, sharding))
        shardings.append(sharding)

    def fill(body: Body, args: list[Value]) -> Value:
        joined = args[0] if len(args) == 2 else body.plain.concatenate(args[:-1], dim)
        return _moved(body, joined, args[-1], {dim: wanted})

    _replace(site, values, shardings, site.zero(), fill)
    return True


def whole_operands(op: Op, dim: int, sharding: TensorSharding, meshes: Meshes) -> list[Value | None]:
    """Per operand of a `concatenate`, a value of which every device has all along the joined dimension, or None."""
    return [_whole(value, dim, sharding, meshes) for value in op.operands]


def _whole(value: Value, dim: int, sharding: TensorSharding, meshes: Meshes) -> Value | None:
    op = value.defining_op
    if op is not None and op.name == "sdy.reshard":
        return _whole(op.operands[0], dim, sharding, meshes)
    if op is not None and op.name == "stablehlo.constant" and op.attrs["value"].is_splat:
        return value
    found = get_sharding(value)
    return value if found is None or _fits(found, dim, sharding, meshes) else None


def _fits(found: TensorSharding, dim: int, sharding: TensorSharding, meshes: Meshes) -> bool:
    """Whether a value is whole along the joined dimension, and otherwise whole too or as it is to be."""
    if found.unreduced or mesh_of(found, meshes) is not mesh_of(sharding, meshes):
        return False
    pairs = enumerate(zip(found.dim_axes, sharding.dim_axes))
    return found.is_fully_replicated or not any(one and (index == dim or one != two) for index, (one, two) in pairs)


def _with_sharding(site: Site, value: Value, sharding: TensorSharding, meshes: Meshes) -> Value:
    """The value sharded so; a constant is made so."""
    op = value.defining_op
    if op is not None and op.name == "stablehlo.constant":
        return site.builder(sharding).value("constant", (), value.type, value=op.attrs["value"])
    if get_sharding(value) == sharding or (get_sharding(value) is None and sharding.is_fully_replicated):
        return value
    return make_reshard(value, sharding).insert_before(site.op).result


def _are_short(moves: Moves) -> bool:
    return all(one.is_short for one in moves.values())


def _replace(site: Site, values: Sequence[Value], shardings: list[TensorSharding], padding: Value, fill: Fill) -> None:
    """Put a manual computation on all axes in the place of the op."""
    names = {axis.name for axes in site.sharding.dim_axes for axis in axes}
    axes = tuple(name for name in site.mesh.axis_names if name in names)
    scalar = TensorSharding(site.sharding.mesh)
    result = site.manual(
        [*values, padding], [*shardings, scalar], site.sharding, site.padded_type(site.sharding), axes, fill
    )
    site.replace(result, site.sharding)


def _moved(body: Body, value: Value, padding: Value, moves: Moves) -> Value:
    for dim, one in moves.items():
        value = move(body, value, padding, dim, _axes(body, dim), one)
    return value


def _axes(body: Body, dim: int) -> Axes:
    return body.site.sharding.dim_axes[dim]


def _sliced(body: Body, value: Value, windows: Mapping[int, object]) -> Value:
    """The value cut along the dimensions that are not sharded."""
    op, shape = body.site.op, value.type.shape or ()
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    for dim in range(len(shape)):
        if dim not in windows:
            starts[dim], limits[dim] = op.attrs["start_indices"][dim], op.attrs["limit_indices"][dim]
            strides[dim] = op.attrs["strides"][dim]
    is_whole = not any(starts) and limits == list(shape) and set(strides) <= {1}
    return value if is_whole else body.plain.slice(value, starts, limits, strides)


def _padded(body: Body, value: Value, padding: Value, windows: Mapping[int, object]) -> Value:
    """The value padded along the dimensions that are not sharded."""
    attrs = body.site.op.attrs
    low, high, interior = (
        [0 if dim in windows else number for dim, number in enumerate(attrs[name])]
        for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
    )
    return body.plain.pad(value, padding, low, high, interior) if any((*low, *high, *interior)) else value
