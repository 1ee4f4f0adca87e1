"""Concatenation and slices.

Source: docs/semantics/partitioner.md#slices-and-concatenations
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyshardy.core.axes import Axes
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op
from pyshardy.transforms.local.checks import check_runs_locally
from pyshardy.transforms.local.localizer import Localizer

_SLICE = ("start_indices", "limit_indices", "strides")


def localize_concatenate(op: Op, local: Localizer) -> None:
    """Concatenate shards; the concatenated dimension must not be sharded."""
    dim = op.attrs["dimension"].value
    if local.shard_counts(op.result)[dim] > 1:
        raise PassError(op, f"concatenates along dimension {dim}, along which the result is sharded")
    for index, value in enumerate(op.operands):
        if local.shard_counts(value)[dim] > 1:
            raise PassError(op, f"concatenates along dimension {dim}, along which operand {index} is sharded")
    check_runs_locally(op, local)
    local.keep(op)


def localize_slice(op: Op, local: Localizer) -> None:
    """Slice the shard; no element may come from another shard."""
    operand = op.operands[0]
    if not local.is_sharded(operand) and not local.is_sharded(op.result):
        local.keep(op)
        return
    starts, limits, strides = (tuple(op.attrs[name]) for name in _SLICE)
    shape, result = local.global_shape(operand), op.result
    counts = local.shard_counts(operand)
    before = local.local_type_of(op, operand).shape or ()
    after = local.local_type_of(op, result).shape or ()
    check_same_axes(op, local.splitting_axes(operand), local.splitting_axes(result))
    new = list(limits)
    for dim, count in enumerate(counts):
        if count == 1:
            continue
        size = local.global_shape(result)[dim]
        is_full = starts[dim] == 0 and (limits[dim] == shape[dim] or size * strides[dim] == shape[dim])
        same_shards = starts[dim] == 0 and strides[dim] == 1 and before[dim] == -(-size // count)
        if not is_full and not same_shards:
            raise _needs_communication(op, dim)
        if strides[dim] > 1 and before[dim] % strides[dim]:
            raise PassError(
                op, f"takes every {strides[dim]}-th element along dimension {dim} of shards of {before[dim]} elements"
            )
        new[dim] = before[dim] if is_full else after[dim]
    op.set_attr("limit_indices", local.attrs.i64_array(tuple(new)))
    local.keep_only(op, _SLICE)


def localize_dynamic_slice(op: Op, local: Localizer) -> None:
    """Slice shards dynamically; sharded dimensions must be taken whole."""
    operand = op.operands[0]
    if not local.is_sharded(operand) and not local.is_sharded(op.result):
        local.keep(op)
        return
    sizes = list(op.attrs["slice_sizes"])
    check_same_axes(op, local.splitting_axes(operand), local.splitting_axes(op.result))
    shape = local.global_shape(operand)
    after = local.local_type_of(op, op.result).shape or ()
    for dim, count in enumerate(local.shard_counts(operand)):
        if count > 1 and sizes[dim] != shape[dim]:
            raise _needs_communication(op, dim)
        if count > 1:
            sizes[dim] = after[dim]
    op.set_attr("slice_sizes", local.attrs.i64_array(tuple(sizes)))
    local.keep_only(op, ("slice_sizes",))


def _needs_communication(op: Op, dim: int) -> PassError:
    return PassError(
        op,
        f"cuts dimension {dim}, which is sharded, in a way that takes elements from other devices; "
        "run sdy-resolve-permutation-factors first",
    )


def check_same_axes(op: Op, before: Sequence[Axes], after: Sequence[Axes]) -> None:
    """Raise `PassError` if a dimension is sharded differently before and after an op."""
    for dim, (one, other) in enumerate(zip(before, after)):
        if one != other:
            raise mismatch(op, dim, one, other)


def mismatch(op: Op, dim: int, one: Axes, other: Axes) -> PassError:
    """The error for a dimension that is sharded differently before and after an op."""
    return PassError(
        op,
        f"has dimension {dim} sharded by [{_text(one)}] and by [{_text(other)}]; "
        "run sdy-insert-explicit-reshards first",
    )


def _text(axes: Iterable[object]) -> str:
    return ", ".join(map(str, axes))
