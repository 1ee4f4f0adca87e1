"""Concatenations along a sharded dimension, as rounds of collective-permutes."""

from __future__ import annotations

from typing import NamedTuple

from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of, shard_counts
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.shardings import get_sharding
from pyshardy.reshard.around_cost import reshard_cost
from pyshardy.reshard.moves import JoinedPart, ShardMove, join_move
from pyshardy.transforms.exchanges.exchanges import moved, replace, sent_in_moves
from pyshardy.transforms.exchanges.sharded_op import Body, ShardedOp
from pyshardy.transforms.reshards.operand_shardings import make_reshard

_SLICE = "stablehlo.slice"


class _Joined(NamedTuple):
    """The inputs of a concatenation.

    Attributes:
        values: The distinct tensors; for an operand that is a slice, the tensor that it slices.
        whole: Per tensor, whether every device has it whole along the concatenated dimension.
        parts: The parts of these tensors, in order.
    """

    values: list[Value]
    whole: list[bool]
    parts: tuple[JoinedPart, ...]


def exchange_join(sharded: ShardedOp, meshes: Meshes, limit: int | None) -> bool:
    """Exchange data for a `concatenate` along a sharded dimension; return whether that was done.

    Args:
        sharded: The op, with the sharding of its result.
        meshes: The meshes of the module.
        limit: The most elements that a device may send; None for no limit.
    """
    dim = sharded.op.attrs["dimension"].value
    count = shard_counts(sharded.sharding, sharded.mesh)[dim]
    if count <= 1:
        return False
    joined = _joined(sharded.op, dim, sharded.sharding, meshes)
    if all(joined.whole):
        return False
    wanted = _move(joined, dim, count)
    shardings = [_open(sharded.sharding, dim) if one else sharded.sharding for one in joined.whole]
    if not wanted.is_short or (limit is not None and _sent(sharded, joined, shardings, wanted, meshes) > limit):
        return False
    values = [
        sharded.aligned(sharded.zero, _with_sharding(sharded, value, sharding), sharding)
        for value, sharding in zip(joined.values, shardings)
    ]

    def fill(body: Body, args: list[Value]) -> Value:
        local = args[0] if len(args) == 2 else body.plain.concatenate(args[:-1], dim)
        return moved(body, local, args[-1], {dim: wanted})

    slices = [op for value in dict.fromkeys(sharded.op.operands) if (op := value.defining_op) and op.name == _SLICE]
    replace(sharded, values, shardings, sharded.zero(), fill)
    for op in slices:
        if not op.result.uses:
            op.erase()
    return True


def _move(joined: _Joined, dim: int, count: int) -> ShardMove:
    """The move. Tensors so narrow that many shards would send to one are gathered first, the smallest first."""
    sizes = [(value.type.shape or ())[dim] for value in joined.values]
    while True:
        found = join_move(tuple(sizes), tuple(joined.whole), joined.parts, count)
        sharded = [(size, number) for number, size in enumerate(sizes) if not joined.whole[number]]
        if found.is_short or len(sharded) < 2:
            return found
        joined.whole[min(sharded)[1]] = True


def _joined(op: Op, dim: int, sharding: TensorSharding, meshes: Meshes) -> _Joined:
    values: dict[Value, int] = {}
    whole, parts = [], []
    for operand in op.operands:
        value, first = _origin(operand, dim)
        size = (operand.type.shape or ())[dim]
        found = _whole(value, dim, sharding, meshes)
        if found is None and value is not operand and get_sharding(value) != sharding:
            value, first = operand, 0
            found = _whole(value, dim, sharding, meshes)
        value = value if found is None else found
        if value not in values:
            values[value] = len(values)
            whole.append(found is not None)
        parts.append(JoinedPart(values[value], first, size))
    return _Joined(list(values), whole, tuple(parts))


def _origin(value: Value, dim: int) -> tuple[Value, int]:
    """The tensor that a value slices along the concatenated dimension, and the start; otherwise the value itself."""
    op = value.defining_op
    if op is None or op.name != _SLICE:
        return value, 0
    starts, strides, shape = op.attrs["start_indices"], op.attrs["strides"], value.type.shape or ()
    full = op.operands[0].type.shape or ()
    if any(size != old for other, (size, old) in enumerate(zip(shape, full)) if other != dim):
        return value, 0
    return (op.operands[0], starts[dim]) if strides[dim] == 1 else (value, 0)


def _whole(value: Value, dim: int, sharding: TensorSharding, meshes: Meshes) -> Value | None:
    """The value before a reshard, if it is or can be replicated along the concatenated dimension."""
    op = value.defining_op
    if op is not None and op.name == "sdy.reshard":
        return _whole(op.operands[0], dim, sharding, meshes)
    if _splat(value) is not None:
        return value
    found = get_sharding(value)
    return value if found is None or _fits(found, dim, sharding, meshes) else None


def _splat(value: Value) -> Op | None:
    op = value.defining_op
    return op if op is not None and op.name == "stablehlo.constant" and op.attrs["value"].is_splat else None


def _fits(found: TensorSharding, dim: int, sharding: TensorSharding, meshes: Meshes) -> bool:
    """Whether a value is replicated along the concatenated dimension, and fits the required sharding along others."""
    if found.unreduced or mesh_of(found, meshes) is not mesh_of(sharding, meshes):
        return False
    pairs = enumerate(zip(found.dim_axes, sharding.dim_axes))
    return found.is_fully_replicated or not any(one and (index == dim or one != two) for index, (one, two) in pairs)


def _open(sharding: TensorSharding, dim: int) -> TensorSharding:
    return sharding.with_dims(DimSharding(()) if index == dim else one for index, one in enumerate(sharding.dims))


def _with_sharding(sharded: ShardedOp, value: Value, sharding: TensorSharding) -> Value:
    """The value with this sharding; a constant is created with it."""
    splat = _splat(value)
    if splat is not None:
        return sharded.builder(sharding).value("constant", (), value.type, value=splat.attrs["value"])
    found = get_sharding(value)
    if found == sharding or (found is None and sharding.is_fully_replicated):
        return value
    return make_reshard(value, sharding).insert_before(sharded.op).result


def _sent(
    sharded: ShardedOp, joined: _Joined, shardings: list[TensorSharding], wanted: ShardMove, meshes: Meshes
) -> int:
    """The number of elements that every device sends, including reshards of the operands."""
    total = sent_in_moves(sharded, {sharded.op.attrs["dimension"].value: wanted})
    for value, sharding in zip(joined.values, shardings):
        if _splat(value) is None:
            total += reshard_cost(get_sharding(value), sharding, value.type.shape or (), meshes)
    return total
