"""Reversal of sharded dimensions: on a mesh with reversed device order, no data moves.

Source: docs/semantics/partitioner.md#reversed-dimensions
"""

from __future__ import annotations

from pyshardy.core.axis_lists import axes_size
from pyshardy.core.devices import padded_shape, shift_pairs
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import shard_counts
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.shardings import get_sharding, module_meshes, set_sharding
from pyshardy.ir.symbols import SymbolTable
from pyshardy.reshard.reversal import reversed_mesh, shift_of
from pyshardy.transforms.builder import Builder, zero_text
from pyshardy.transforms.exchanges.resolver import Resolver
from pyshardy.transforms.exchanges.sharded_op import Body, ShardedOp
from pyshardy.transforms.reshards.operand_shardings import make_reshard

_INLINED = "mesh"
"""The prefix of the name of a reversed mesh, if the mesh itself has no name."""


def resolve_reverse(op: Op, resolver: Resolver) -> bool:
    """Reverse every shard on its device, then permute the shards; return False if that is not allowed."""
    if not resolver.may_exchange(op):
        return False
    sharded = resolver.sharded(op)
    if sharded is not None:
        _resolve(sharded, resolver.root)
    return True


def _resolve(sharded: ShardedOp, root: Op) -> None:
    op, sharding, counts = sharded.op, sharded.sharding, shard_counts(sharded.sharding, sharded.mesh)
    dims = [dim for dim in op.attrs["dimensions"] if counts[dim] > 1]
    if not dims:
        return
    uneven = sorted(dim for dim in dims if sharded.shape[dim] % counts[dim])
    shape, following = sharded.out_shape, op.next
    assert following is not None
    out_sharding = get_sharding(op.result) or TensorSharding.fully_replicated(sharding.mesh, sharding.rank)
    if uneven:
        op.set_operand(0, _shifted(sharded, uneven))
        op.result.set_type(op.operands[0].type)
    axes = [axis for dim in dims for axis in sharding.dims[dim].axes]
    set_sharding(op.result, sharding.with_mesh(_mesh_name(root, sharding.mesh, reversed_mesh(sharded.mesh, axes), op)))
    last = make_reshard(op.result, out_sharding).insert_after(op)
    op.result.replace_uses(last.result, lambda user, _: user is not last)
    if uneven:
        stays = sharding.mesh == out_sharding.mesh and sharding.dim_axes == out_sharding.dim_axes
        builder = Builder(sharded.env.attrs, following, op.place, sharding if stays else out_sharding)
        trimmed = builder.cut(last.result, shape)
        last.result.replace_uses(trimmed, lambda user, _: user is not trimmed.defining_op)


def _shifted(sharded: ShardedOp, dims: list[int]) -> Value:
    """The operand, with padding before its data along these dimensions."""
    builder, sharding = sharded.builder(sharded.sharding), sharded.sharding
    padded = padded_shape(sharding, sharded.mesh, sharded.shape)
    names = {axis.name for dim in dims for axis in sharding.dims[dim].axes}
    high = [
        padded[dim] - size if names.intersection(axis.name for axis in sharding.dims[dim].axes) else 0
        for dim, size in enumerate(sharded.shape)
    ]
    value = builder.pad(sharded.op.operands[0], sharded.zero(), [0] * len(high), high)
    axes = tuple(name for name in sharded.mesh.axis_names if name in names)

    def fill(body: Body, args: list[Value]) -> Value:
        local = args[0]
        for dim in dims:
            local = _shift(body, local, dim)
        return local

    return sharded.manual([value], [sharding], sharding, value.type, axes, fill)


def _shift(body: Body, value: Value, dim: int) -> Value:
    sharded, builder = body.sharded, body.marked()
    axes, shape = sharded.sharding.dims[dim].axes, list(value.type.shape or ())
    shift = shift_of(sharded.shape[dim], axes_size(axes, sharded.mesh))
    head = _sent(body, value, dim, shift.hops) if shift.hops else value
    tail = _sent(body, value, dim, shift.hops + 1)
    starts, limits = [0] * len(shape), list(shape)
    starts[dim] = limits[dim] = shift.kept
    first = builder.slice(tail, starts, shape)
    return builder.concatenate([first, builder.cut(head, limits)], dim)


def _sent(body: Body, value: Value, dim: int, hops: int) -> Value:
    """The data of the shard `step` positions before this one; zeros if there is none."""
    sharded, builder = body.sharded, body.marked()
    pairs = shift_pairs(sharded.sharding.dims[dim].axes, sharded.mesh, hops)
    if not pairs:
        zero = body.plain.splat(zero_text(value.type.element), body.plain.like((), value.type))
        return builder.broadcast(zero, value.type.shape or ())
    return builder.permute(value, pairs, sharded.env.next_channel())


def _mesh_name(root: Op, like: str | Mesh, mesh: Mesh, op: Op) -> str:
    """The name of a mesh in the module; the mesh is added at the top if it is missing."""
    for name, found in module_meshes(root).items():
        if found is mesh:
            return name
    base = like if isinstance(like, str) else _INLINED
    new = Op("sdy.mesh", attrs={"sym_name": f"{base}_reversed", "mesh": mesh}, location=op.location)
    root.region.block.prepend(new)
    return SymbolTable(root, new).insert(new)
