"""Padding around explicit collectives.

Source: docs/semantics/partitioner.md#padding-of-ops
"""

from __future__ import annotations

from pyshardy.core.axes import Axes
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.shardings import get_sharding
from pyshardy.transforms.padding.padder import Padder, shape_of


def pad_slicing(op: Op, padder: Padder) -> None:
    """`all_slice` and `reduce_scatter`: pad the operand before."""
    if _splits_padding(op, padder):
        if op.name == "sdy.reduce_scatter":
            _reduce_before(op)
        _through_whole(op, padder)
    else:
        _pad_operand(op, padder)


def pad_all_to_all(op: Op, padder: Padder) -> None:
    """`all_to_all`: pad the dimensions that axes move to, and trim those that they come from."""
    if _splits_padding(op, padder):
        _through_whole(op, padder)
        return
    _pad_operand(op, padder)
    _trim(op, padder)


def pad_gathering(op: Op, padder: Padder) -> None:
    """`all_gather` and `sharded_to_unreduced`: trim the result."""
    if op.name == "sdy.all_gather" and _splits_padding(op, padder):
        _through_whole(op, padder)
        return
    _take_shape(op, padder)
    _trim(op, padder)


def pad_in_place(op: Op, padder: Padder) -> None:
    """`all_reduce`, `collective_permute`, ...: the same shape before and after."""
    padder.pad_result(op.result)


def _splits_padding(op: Op, padder: Padder) -> bool:
    """Whether a dimension is sharded before and after with different shard sizes, so that data moves between shards."""
    value = op.operands[0]
    before, after = get_sharding(value), _out_sharding(op)
    if before is None or before.rank != after.rank:
        return False
    sizes = zip(before.dims, after.dims, shape_of(value), padder.padded_shape(value, after))
    return any(old.axes and new.axes and size != needed for old, new, size, needed in sizes)


def _through_whole(op: Op, padder: Padder) -> None:
    """Replace a collective by a gather of the whole tensor and a slice."""
    value, after = op.operands[0], _out_sharding(op)
    before = get_sharding(value)
    assert before is not None
    nothing = DimSharding()
    whole = before.with_dims([nothing] * before.rank)
    if any(before.dim_axes):
        value = _make("all_gather", "gathering_axes", before.dim_axes, value, whole, op, padder)
    if any(after.dim_axes):
        value = _make("all_slice", "slicing_axes", after.dim_axes, value, after, op, padder)
    op.result.replace_uses(value)
    op.erase()


def _make(
    name: str, attribute: str, axes: tuple[Axes, ...], value: Value, sharding: TensorSharding, op: Op, padder: Padder
) -> Value:
    """Insert a padded and trimmed collective before an op; return its result."""
    type = padder.originals.get(value, value.type)
    made = Op(f"sdy.{name}", [value], [type], {attribute: axes, "out_sharding": sharding}, location=op.place)
    op.set_operand(0, made.insert_before(op).result)
    (pad_gathering if name == "all_gather" else pad_slicing)(made, padder)
    return op.operands[0]


def _reduce_before(op: Op) -> None:
    """Replace a reduce-scatter by an all-reduce of its operand."""
    axes = sum(op.attrs["reduce_scatter_axes"], ())
    before = get_sharding(op.operands[0])
    assert before is not None
    attrs = {name: op.attrs[name] for name in ("reduction_op",) if name in op.attrs}
    reduced = before.with_unreduced([axis for axis in before.unreduced if axis not in axes])
    attrs |= {"reduction_axes": axes, "out_sharding": reduced}
    value = op.operands[0]
    made = Op("sdy.all_reduce", [value], [value.type], attrs, location=op.place).insert_before(op)
    op.set_operand(0, made.result)


def _pad_operand(op: Op, padder: Padder) -> None:
    value = op.operands[0]
    wanted = padder.padded_shape(value, _out_sharding(op))
    shape = [max(size, needed) for size, needed in zip(shape_of(value), wanted)]
    op.set_operand(0, padder.pad(value, shape, op))
    _take_shape(op, padder)


def _take_shape(op: Op, padder: Padder) -> None:
    """Give the result the shape of the operand."""
    value = op.operands[0]
    padder.set_shape(op.result, shape_of(value))
    if value in padder.paddings:
        padder.paddings[op.result] = padder.paddings[value]


def _trim(op: Op, padder: Padder) -> None:
    """Trim the result. The result of gathering a padded dimension is sliced even if nothing is cut off."""
    sharding = _out_sharding(op)
    padded, original = shape_of(op.result), padder.original_shape(op.result)
    gathered = zip(op.attrs.get("gathering_axes", ()), padded, original)
    if padder.padded_shape(op.result, sharding) != padded or any(axes and a != b for axes, a, b in gathered):
        padder.trim(op, sharding)


def _out_sharding(op: Op) -> TensorSharding:
    found: TensorSharding = op.attrs["out_sharding"]
    return found
