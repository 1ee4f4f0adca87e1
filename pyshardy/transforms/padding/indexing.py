"""Padding of ops with dynamic indices, which must not reach padding.

Source: docs/semantics/partitioner.md#padding-of-ops
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pyshardy.ir.constants import constant_integer
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.dialects import stablehlo
from pyshardy.ir.nodes import Op, Value
from pyshardy.rules.dimension_numbers import GatherNumbers
from pyshardy.transforms.local.bounds import holds, largest, wide_enough
from pyshardy.transforms.local.indexing import index_more, scatter_numbers
from pyshardy.transforms.padding.padder import Padder, shape_of


def pad_gather(op: Op, padder: Padder) -> None:
    """`gather`: keep indices out of the padding; whole dimensions include it."""
    operand, indices = op.operands
    numbers = stablehlo.GatherDimensionNumbers(op.attrs["dimension_numbers"])
    padded = padder.padded_dims(operand)
    components = list(numbers.start_index_map)
    sizes, old = list(op.attrs["slice_sizes"]), padder.original_shape(operand)
    if any(dim in padded for dim in components):
        limits = [old[dim] - sizes[dim] for dim in components]
        op.set_operand(1, _at_most(op, padder, indices, limits, numbers.index_vector_dim))
    left_out = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    whole = [dim for dim in padded if sizes[dim] == old[dim] and dim not in left_out]
    if whole:
        _set_sizes(op, padder, whole)
    padder.pad_result(op.result)


def pad_dynamic_slice(op: Op, padder: Padder) -> None:
    """`dynamic_slice`: whole dimensions include their padding."""
    operand = op.operands[0]
    sizes, old = list(op.attrs["slice_sizes"]), padder.original_shape(operand)
    padded = padder.padded_dims(operand)
    whole = [dim for dim in padded if sizes[dim] == old[dim]]
    for dim in padded:
        if dim not in whole:
            op.set_operand(dim + 1, _start_at_most(op, padder, op.operands[dim + 1], old[dim] - sizes[dim]))
    if whole:
        _set_sizes(op, padder, whole)
    padder.pad_result(op.result)


def pad_dynamic_update_slice(op: Op, padder: Padder) -> None:
    """`dynamic_update_slice`: keep the update out of the padding."""
    operand, update, *starts = op.operands
    old, sizes = padder.original_shape(operand), padder.original_shape(update)
    for dim in padder.padded_dims(operand):
        if sizes[dim] != old[dim]:
            op.set_operand(dim + 2, _start_at_most(op, padder, starts[dim], old[dim] - sizes[dim]))
    padder.pad_result(op.result)


def pad_scatter(op: Op, padder: Padder) -> None:
    """`scatter`: give updates in the padding indices that are out of bounds."""
    count = (len(op.operands) - 1) // 2
    operand, indices = op.operands[0], op.operands[count]
    facts: Any = dict(padder.context.specs.spec(op).attributes)["scatter_dimension_numbers"]
    numbers = cast(GatherNumbers, facts)
    dims = [dim for dim in padder.padded_dims(indices) if dim not in (*numbers.index_batching, numbers.index_vector)]
    if dims:
        targets = scatter_numbers(op).indexed
        if not targets:
            indices, targets = _index_one(op, padder, indices, numbers)
        limits = [shape_of(operand)[dim] for dim in targets]
        op.set_operand(count, _elsewhere(op, padder, indices, limits, numbers.index_vector, dims))
    for result in op.results:
        padder.pad_result(result)


def _index_one(op: Op, padder: Padder, indices: Value, numbers: GatherNumbers) -> tuple[Value, tuple[int, ...]]:
    """Give indices without components a zero component, and return the dimension of the input that it refers to."""
    free = [dim for dim in range(op.operands[0].type.rank) if dim not in numbers.input_batching]
    if not free:
        raise PassError(op, "has padded updates and no dimension along which an index could be out of bounds")
    builder, old = padder.like(indices, op), padder.originals[indices]
    is_vector = [dim == numbers.index_vector for dim in range(old.rank)]
    padded, data = (
        builder.like([1 if vector else size for vector, size in zip(is_vector, shape)], old)
        for shape in (shape_of(indices), old.shape or ())
    )
    found = builder.splat("0", padded)
    padder.originals[found] = data
    index_more(op, free[:1])
    return found, (free[0],)


def pad_get_dimension_size(op: Op, padder: Padder) -> None:
    """`get_dimension_size`: the size without padding."""
    dim = op.attrs["dimension"].value
    if dim in padder.padded_dims(op.operands[0]):
        size = padder.original_shape(op.operands[0])[dim]
        op.result.replace_uses(padder.builder(op).splat(str(size), op.result.type))
        op.erase()


def _set_sizes(op: Op, padder: Padder, whole: Sequence[int]) -> None:
    sizes = list(op.attrs["slice_sizes"])
    for dim in whole:
        sizes[dim] = shape_of(op.operands[0])[dim]
    op.set_attr("slice_sizes", padder.context.attrs.i64_array(tuple(sizes)))


def _start_at_most(op: Op, padder: Padder, start: Value, limit: int) -> Value:
    """The start of a slice, clamped to the last possible one; a constant stays a constant."""
    builder = padder.builder(op)
    value = constant_integer(start)
    if value is not None:
        return start if value <= limit else builder.splat(str(limit), start.type)
    if not holds(start.type.element, limit):
        return start
    return builder.combine("minimum", start, builder.splat(str(limit), start.type))


def _at_most(op: Op, padder: Padder, indices: Value, limits: Sequence[int], vector_dim: int) -> Value:
    """The indices, each component clamped to its limit, or to the largest number of its type."""
    builder, type = padder.like(indices, op), indices.type
    most = [min(limit, largest(type.element)) for limit in limits]
    if vector_dim == type.rank:
        bound = builder.splat(str(most[0]), type)
    else:
        bound = padder.builder(op).table(most, type.element)
        if bound.type is not type:
            bound = builder.broadcast(bound, shape_of(indices), [vector_dim])
    found = builder.combine("minimum", indices, bound)
    if indices in padder.originals:
        padder.originals[found] = padder.originals[indices]
    return found


def _elsewhere(
    op: Op, padder: Padder, indices: Value, limits: Sequence[int], vector_dim: int, dims: Sequence[int]
) -> Value:
    """The indices, out of bounds in their padding; in a wider type if theirs has no number out of bounds."""
    wide = wide_enough(padder.like(indices, op), indices, max(limits))
    if wide is not indices:
        padder.originals[wide] = padder.like(indices, op).like(padder.original_shape(indices), wide.type)
        indices = wide
    builder, element = padder.builder(op), indices.type.element
    if vector_dim == indices.type.rank:
        return padder.masked(indices, op, lambda: builder.splat(str(limits[0]), builder.type((), element)), dims)
    return padder.masked(indices, op, lambda: builder.table(limits, element), dims, [vector_dim])
