"""Dimension numbers of gathers and scatters, as they are needed to run them on shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyshardy.ir.dialects import stablehlo
from pyshardy.ir.nodes import Op


class Numbers(NamedTuple):
    """The dimensions of a gather, or of a scatter, its mirror image.

    Attributes:
        window: Dimensions of the result, or of the updates, that run over a window.
        dropped: Dimensions of the input that a window lacks.
        input_batching: Batching dimensions of the input.
        indexed: The dimension of the input for every component of an index.
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
    """Let the components of the indices of a scatter be for these dimensions of its input."""
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
