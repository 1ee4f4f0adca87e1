"""Dimension numbers of gathers and scatters, in one form for both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyshardy.ir.dialects import stablehlo
from pyshardy.ir.nodes import Op


class Numbers(NamedTuple):
    """The dimension numbers of a gather or a scatter.

    Attributes:
        window: Window dimensions of the result or the updates.
        dropped: Dimensions of the input that are not window dimensions.
        input_batching: Batching dimensions of the input.
        indexed: Per component of an index, the dimension of the input.
        vector_dim: The dimension of the indices that holds the components; their rank if there is none.
    """

    window: tuple[int, ...]
    dropped: tuple[int, ...]
    input_batching: tuple[int, ...]
    indexed: tuple[int, ...]
    vector_dim: int


def gather_numbers(op: Op) -> Numbers:
    """The numbers of a gather."""
    found = stablehlo.GatherDimensionNumbers(op.attrs["dimension_numbers"])
    return Numbers(
        tuple(found.offset_dims),
        tuple(found.collapsed_slice_dims),
        tuple(found.operand_batching_dims),
        tuple(found.start_index_map),
        found.index_vector_dim,
    )


def scatter_numbers(op: Op) -> Numbers:
    """The numbers of a scatter."""
    found = stablehlo.ScatterDimensionNumbers(op.attrs["scatter_dimension_numbers"])
    return Numbers(
        tuple(found.update_window_dims),
        tuple(found.inserted_window_dims),
        tuple(found.input_batching_dims),
        tuple(found.scattered_dims_to_operand_dims),
        found.index_vector_dim,
    )


def index_more(op: Op, indexed: Sequence[int]) -> None:
    """Set the input dimensions of a scatter that the components of its indices refer to."""
    attr = op.attrs["scatter_dimension_numbers"]
    found = stablehlo.ScatterDimensionNumbers(attr)
    op.set_attr(
        "scatter_dimension_numbers",
        stablehlo.ScatterDimensionNumbers.get(
            list(found.update_window_dims),
            list(found.inserted_window_dims),
            list(found.input_batching_dims),
            list(found.scatter_indices_batching_dims),
            list(indexed),
            found.index_vector_dim,
            attr.context,
        ),
    )
