"""Programs as they would be if rows that are looked up in one list of all examples were looked up in each example."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from jaxlib.mlir.dialects import stablehlo

from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.nodes import Op
from pyshardy.transforms.builder import Builder

GATHER = "stablehlo.gather"
SCATTER = "stablehlo.scatter"


class _Lookup(NamedTuple):
    """A gather or scatter of rows along one dimension, each by one index.

    Attributes:
        dim: The dimension of its operand.
        windows: The dimensions of the rows in what is read or written.
        first: The first dimension of these that is one of the indices; they are next to each other.
        vector: The shape of the indices without their last dimension, which has one entry.
    """

    dim: int
    windows: list[int]
    first: int
    vector: tuple[int, ...]


def flat_dimension(op: Op) -> int | None:
    """The dimension in which a gather or scatter looks rows up by one index each; None for another op."""
    found = _lookup(op)
    return None if found is None else found.dim


def look_up_in_examples(op: Op, attrs: AttrTable, examples: int) -> None:
    """Let each example look up its own rows: as many of the indices, in order, are its own.

    Args:
        op: An op for which `flat_dimension` finds a dimension, of which the examples are equal parts.
        attrs: The attributes and types of the module.
        examples: The number of examples, which divides the number of indices.
    """
    found = _lookup(op)
    assert found is not None
    dim, builder = found.dim, Builder(attrs, op, op.place)
    operand, indices, *updates = op.operands
    shape, data = operand.type.shape or (), (updates[0] if updates else op.result).type
    rows, count = shape[dim] // examples, prod(found.vector) // examples
    apart = [*shape[:dim], examples, rows, *shape[dim + 1 :]]
    own = builder.reshape(indices, [examples, count, 1])
    start = builder.combine("multiply", builder.iota(own.type, 0), builder.splat(str(rows), own.type))
    place, length = found.first, len(found.vector)
    given = [*(data.shape or ())[:place], examples, count, *(data.shape or ())[place + length :]]
    made = op.clone()
    made.set_operand(0, builder.reshape(operand, apart))
    made.set_operand(1, builder.combine("subtract", own, start))
    windows = [one if one < place else one - length + 2 for one in found.windows]
    made.set_attr(_NAMES[op.name], _numbers(op.name, windows, dim))
    if updates:
        made.set_operand(2, builder.reshape(updates[0], given))
    else:
        sizes = list(op.attrs["slice_sizes"])
        made.set_attr("slice_sizes", builder.array([*sizes[:dim], 1, *sizes[dim:]]))
    made.results[0].set_type(builder.like(apart if updates else given, op.result.type))
    builder.put(made)
    op.result.replace_uses(builder.reshape(made.result, op.result.type.shape or ()))
    op.erase()


_NAMES = {GATHER: "dimension_numbers", SCATTER: "scatter_dimension_numbers"}


def _lookup(op: Op) -> _Lookup | None:
    """The rows that an op looks up; None if it is another op, has batching dimensions or indices of several parts."""
    if op.name not in _NAMES or len(op.results) != 1 or not all(one.type.is_static for one in op.operands):
        return None
    attribute = op.attrs[_NAMES[op.name]]
    if op.name == GATHER:
        numbers: Any = stablehlo.GatherDimensionNumbers(attribute)
        dropped, batching, index_map = (
            numbers.collapsed_slice_dims,
            numbers.operand_batching_dims,
            numbers.start_index_map,
        )
        windows, data = list(numbers.offset_dims), op.result.type.shape or ()
    else:
        numbers = stablehlo.ScatterDimensionNumbers(attribute)
        dropped, batching = numbers.inserted_window_dims, numbers.input_batching_dims
        index_map = numbers.scattered_dims_to_operand_dims
        windows, data = list(numbers.update_window_dims), op.operands[2].type.shape or ()
    indices = op.operands[1].type.shape or ()
    places = [dim for dim in range(len(data)) if dim not in windows]
    is_plain = len(index_map) == 1 and list(dropped) == list(index_map) and not list(batching)
    if not is_plain or not places or places[-1] - places[0] + 1 != len(places) or indices[-1:] != (1,):
        return None
    if numbers.index_vector_dim != len(indices) - 1:
        return None
    return _Lookup(index_map[0], windows, places[0], indices[:-1])


def _numbers(name: str, windows: list[int], dim: int) -> Any:
    """The dimension numbers of a lookup in each example."""
    if name == GATHER:
        return stablehlo.GatherDimensionNumbers.get(
            offset_dims=windows, collapsed_slice_dims=[dim + 1], operand_batching_dims=[dim],
            start_indices_batching_dims=[0], start_index_map=[dim + 1], index_vector_dim=2,
        )  # fmt: skip
    return stablehlo.ScatterDimensionNumbers.get(
        update_window_dims=windows, inserted_window_dims=[dim + 1], input_batching_dims=[dim],
        scatter_indices_batching_dims=[0], scattered_dims_to_operand_dims=[dim + 1], index_vector_dim=2,
    )  # fmt: skip
