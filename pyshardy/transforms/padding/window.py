"""Padding of `pad` and `slice`.

Source: docs/semantics/partitioner.md#padding-of-ops
"""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.core.sharding_on_mesh import mesh_of, shard_counts
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import get_sharding
from pyshardy.reshard.halo import is_free_slice
from pyshardy.transforms.padding.constants import filler_of
from pyshardy.transforms.padding.padder import Padder, shape_of


def pad_pad(op: Op, padder: Padder) -> None:
    """`pad`: an operand whose padding has the same content needs less high padding."""
    value, filler = op.operands
    low, high, interior = (
        list(op.attrs[name]) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
    )
    old, size = padder.original_shape(value), shape_of(value)
    out, new_out = padder.original_shape(op.result), padder.padded_shape(op.result)
    new_high = [new_out[dim] - size[dim] - low[dim] - max(0, size[dim] - 1) * interior[dim] for dim in range(len(size))]
    is_seen = any(
        size[dim] != old[dim] and (new_high[dim] < high[dim] or low[dim] + old[dim] * (interior[dim] + 1) < out[dim])
        for dim in range(len(size))
    )
    kind = filler_of(filler)
    is_uniform = value not in padder.originals or padder.paddings.get(value) is kind
    if is_seen and value in padder.originals:
        value = padder.masked(value, op, lambda: filler)
        op.set_operand(0, value)
        is_uniform = True
    op.set_attr("edge_padding_high", padder.context.attrs.i64_array(tuple(new_high)))
    cuts = any(high[dim] < 0 for dim in range(len(out)) if new_out[dim] != out[dim])
    padder.pad_result(op.result)
    if kind is not None and is_uniform and not cuts:
        padder.paddings[op.result] = kind


def pad_slice(op: Op, padder: Padder) -> None:
    """`slice`: include the padding if the shards of the result equal those of the operand."""
    shape, padded = padder.original_shape(op.result), padder.padded_shape(op.result)
    if padded == shape:
        return
    strides = [
        1 if size <= 1 and size != new else stride for size, new, stride in zip(shape, padded, op.attrs["strides"])
    ]
    _check_free(op, strides, padder)
    op.set_attr("strides", padder.context.attrs.i64_array(tuple(strides)))
    starts, limits = list(op.attrs["start_indices"]), list(op.attrs["limit_indices"])
    for dim, (size, new) in enumerate(zip(shape, padded)):
        if size != new:
            limits[dim] = starts[dim] + new
    op.set_attr("limit_indices", padder.context.attrs.i64_array(tuple(limits)))
    padder.pad_result(op.result)


def _check_free(op: Op, strides: Sequence[int], padder: Padder) -> None:
    sharding = get_sharding(op.result)
    assert sharding is not None
    counts = shard_counts(sharding, mesh_of(sharding, padder.meshes))
    sizes, out_sizes = padder.original_shape(op.operands[0]), padder.original_shape(op.result)
    for dim, count in enumerate(counts):
        start, stride = op.attrs["start_indices"][dim], strides[dim]
        if out_sizes[dim] % count and not is_free_slice(sizes[dim], out_sizes[dim], start, stride, count):
            raise PassError(
                op,
                f"slices dimension {dim}, which is sharded, so that data moves between devices; try "
                "-sdy-resolve-permutation-factors first",
            )
