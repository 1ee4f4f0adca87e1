"""Programs as they would be with other code: an op on shards, and rows and pieces in another order."""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.core.boxes import local_shape
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.functions import RULE, SHARDING
from pyshardy.ir.nodes import Op, Value
from pyshardy.transforms.builder import Builder

RESHAPE, SLICE, PAD = "stablehlo.reshape", "stablehlo.slice", "stablehlo.pad"
CONCATENATE = "stablehlo.concatenate"


def run_on_shards(op: Op, shardings: Sequence[TensorSharding], mesh: Mesh, attrs: AttrTable) -> None:
    """Put an op into a manual computation, as `jax.shard_map` does: every device runs it on its shards.

    Args:
        op: The op.
        shardings: The shardings of its operands, then of its results, by whole axes that divide the dimensions.
        mesh: Their mesh.
        attrs: The attributes and types of the module.
    """
    count = len(op.operands)
    axes = [axis.name for sharding in shardings for dim in sharding.dim_axes for axis in dim]
    builder = Builder(attrs, op, op.place)
    computation = builder.op(
        "sdy.manual_computation",
        op.operands,
        [result.type for result in op.results],
        {
            "in_shardings": tuple(shardings[:count]),
            "out_shardings": tuple(shardings[count:]),
            "manual_axes": tuple(name for name, _ in mesh.axes if name in axes),
        },
        region_count=1,
    )
    block = computation.region.add_block()

    def local(value: Value, place: int) -> tuple[int, ...]:
        return local_shape(shardings[place], mesh, value.type.shape or ())

    args = [
        block.add_arg(builder.like(local(value, place), value.type), op.place)
        for place, value in enumerate(op.operands)
    ]
    inner = Builder(attrs, block, op.place)
    made = op.clone()
    for place, arg in enumerate(args):
        made.set_operand(place, arg)
    inner.put(made)
    for place, result in enumerate(made.results):
        result.set_type(inner.like(local(result, count + place), result.type))
    for name in (RULE, SHARDING):
        made.remove_attr(name)
    inner.op("sdy.return", made.results, [])
    for old, new in zip(op.results, computation.results):
        old.replace_uses(new)
    op.erase()


def takes_micro_batches(op: Op) -> bool:
    """Whether a reshape divides its first dimension in two, with consecutive rows in each part."""
    if op.name != RESHAPE or not op.result.type.is_static or not op.operands[0].type.is_static:
        return False
    before, after = op.operands[0].type.shape or (), op.result.type.shape or ()
    return len(after) == len(before) + 1 and 1 not in after[:2] and before[1:] == after[2:]


def stride_micro_batches(op: Op, attrs: AttrTable) -> None:
    """Let each micro-batch of a reshape have every n-th row instead of a stretch of rows.

    Args:
        op: A reshape for which `takes_micro_batches` holds.
        attrs: The attributes and types of the module.
    """
    builder = Builder(attrs, op, op.place)
    count, size, *rest = op.result.type.shape or ()
    divided = builder.reshape(op.operands[0], [size, count, *rest])
    order = [1, 0, *range(2, 2 + len(rest))]
    turned = builder.value("transpose", [divided], op.result.type, permutation=builder.array(order))
    op.result.replace_uses(turned)
    op.erase()


def merged_dimension(op: Op) -> int | None:
    """The first of two dimensions that a reshape makes one, or that it makes of one; None for another op."""
    if op.name != RESHAPE or not op.result.type.is_static or not op.operands[0].type.is_static:
        return None
    return two_of_one(op.operands[0].type.shape or (), op.result.type.shape or ())


def two_of_one(one: tuple[int, ...], other: tuple[int, ...]) -> int | None:
    """The first of two dimensions of one shape that are one in another; None if they differ in more.

    >>> two_of_one((64, 128, 32), (8192, 32)), two_of_one((64, 32, 128), (8192, 32))
    (0, None)
    """
    whole, apart = sorted((one, other), key=len)
    for dim, size in enumerate(whole if len(apart) == len(whole) + 1 else ()):
        first, second = apart[dim : dim + 2]
        if (
            first * second == size
            and 1 not in (first, second)
            and apart == (*whole[:dim], first, second, *whole[dim + 1 :])
        ):
            return dim
    return None


def merge_the_other_way(op: Op, attrs: AttrTable) -> None:
    """Let the second of two dimensions that a reshape merges come first, also where it makes them of one.

    Args:
        op: A reshape for which `merged_dimension` finds one.
        attrs: The attributes and types of the module.
    """
    dim = merged_dimension(op)
    assert dim is not None
    builder, value, type_ = Builder(attrs, op, op.place), op.operands[0], op.result.type
    before, after = list(value.type.shape or ()), list(type_.shape or ())
    is_merge = len(before) > len(after)
    order = list(range(max(len(before), len(after))))
    order[dim : dim + 2] = dim + 1, dim
    swapped = builder.array(order)
    apart = [(before if is_merge else after)[at] for at in order]
    if is_merge:
        turned = builder.value("transpose", [value], builder.like(apart, value.type), permutation=swapped)
        made = builder.reshape(turned, after)
    else:
        made = builder.value("transpose", [builder.reshape(value, apart)], type_, permutation=swapped)
    op.result.replace_uses(made)
    op.erase()


def pieces_of(op: Op) -> tuple[int, int] | None:
    """The dimension that an op divides into equal pieces, or makes of them, and their number; None for another op.

    Such an op is a slice of one piece, a pad of one piece (in the gradient), or a concatenation of all pieces.
    """
    if op.name not in (SLICE, PAD, CONCATENATE) or not op.result.type.is_static or not op.operands[0].type.is_static:
        return None
    shapes = [op.operands[0].type.shape or (), op.result.type.shape or ()]
    whole, piece = shapes if op.name == SLICE else shapes[::-1]
    cut = [dim for dim, size in enumerate(piece) if size != whole[dim]]
    if len(cut) != 1 or not piece[cut[0]] or whole[cut[0]] % piece[cut[0]]:
        return None
    count = whole[cut[0]] // piece[cut[0]]
    if op.name == CONCATENATE:
        is_whole = len(op.operands) == count and all(value.type.shape == piece for value in op.operands)
        return (cut[0], count) if is_whole else None
    return (cut[0], count) if _piece(op, cut[0]) is not None else None


def _piece(op: Op, dim: int) -> int | None:
    """The number of the piece that a slice takes or a pad gives; None if it is no whole piece."""
    if op.name == SLICE:
        start, size = op.attrs["start_indices"][dim], (op.result.type.shape or ())[dim]
        steps = set(op.attrs["strides"])
    else:
        start, size = op.attrs["edge_padding_low"][dim], (op.operands[0].type.shape or ())[dim]
        steps = {step + 1 for step in op.attrs["interior_padding"]}
    return start // size if steps == {1} and start >= 0 and start % size == 0 else None


def interleave_pieces(op: Op, attrs: AttrTable) -> None:
    """Let each piece of a dimension be every n-th element instead of a stretch of them.

    Args:
        op: An op for which `pieces_of` finds pieces.
        attrs: The attributes and types of the module.
    """
    found = pieces_of(op)
    assert found is not None
    dim, count = found
    builder = Builder(attrs, op, op.place)
    shape, size = op.result.type.shape or (), _piece_shape(op)[dim]
    apart = [*shape[:dim], size, count, *shape[dim + 1 :]]
    one = [*shape[:dim], size, 1, *shape[dim + 1 :]]
    if op.name == SLICE:
        steps = _box(apart, dim + 1, _piece(op, dim) or 0)
        given, type_ = builder.reshape(op.operands[0], apart), builder.like(one, op.result.type)
        made = builder.value("slice", [given], type_, **{name: builder.array(values) for name, values in steps.items()})
    elif op.name == PAD:
        low, high, none = ([0] * len(apart) for _ in range(3))
        low[dim + 1] = _piece(op, dim) or 0
        high[dim + 1] = count - 1 - low[dim + 1]
        made = builder.value(
            "pad",
            [builder.reshape(op.operands[0], one), op.operands[1]],
            builder.like(apart, op.result.type),
            edge_padding_low=builder.array(low),
            edge_padding_high=builder.array(high),
            interior_padding=builder.array(none),
        )
    else:
        made = builder.concatenate([builder.reshape(value, one) for value in op.operands], dim + 1)
    op.result.replace_uses(builder.reshape(made, shape))
    op.erase()


def _box(shape: Sequence[int], dim: int, at: int) -> dict[str, list[int]]:
    """The bounds of a slice that takes one place of a dimension."""
    start, limit = [0] * len(shape), list(shape)
    start[dim], limit[dim] = at, at + 1
    return {"start_indices": start, "limit_indices": limit, "strides": [1] * len(shape)}


def _piece_shape(op: Op) -> tuple[int, ...]:
    value = op.result if op.name == SLICE else op.operands[0]
    return value.type.shape or ()
