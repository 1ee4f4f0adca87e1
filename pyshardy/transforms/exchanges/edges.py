"""The numbers of `pad` and `slice`, and the dimensions of which they need nothing from other shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyshardy.ir.nodes import Op
from pyshardy.reshard.halo import is_free_pad, is_free_slice


class Edges(NamedTuple):
    """The numbers of a `pad`, or of a `slice` as a pad with negative padding."""

    low: tuple[int, ...]
    interior: tuple[int, ...]
    strides: tuple[int, ...]


def window_edges(op: Op) -> Edges:
    """The window of a `pad` or `slice` in every dimension."""
    if op.name == "stablehlo.pad":
        low, interior = (tuple(op.attrs[name]) for name in ("edge_padding_low", "interior_padding"))
        return Edges(low, interior, (1,) * len(low))
    starts, strides = tuple(op.attrs["start_indices"]), tuple(op.attrs["strides"])
    return Edges(tuple(-start for start in starts), (0,) * len(starts), strides)


def free_dims(op: Op, counts: Sequence[int]) -> set[int]:
    """The dimensions of a `pad` or `slice` that need no data from other shards.

    Source: docs/semantics/partitioner.md#without-communication
    """
    edges = window_edges(op)
    shape, out_shape = op.operands[0].type.shape or (), op.result.type.shape or ()
    is_pad = op.name == "stablehlo.pad"
    return {
        dim
        for dim, (size, out_size, count) in enumerate(zip(shape, out_shape, counts))
        if (
            is_free_pad(size, out_size, edges.low[dim], edges.interior[dim], count)
            if is_pad
            else is_free_slice(size, out_size, -edges.low[dim], edges.strides[dim], count)
        )
    }
