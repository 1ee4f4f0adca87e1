"""A reshape as groups of dimensions that turn into one another.

Source: docs/semantics/partitioner.md#groups-of-a-reshape
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple


class GroupKind(Enum):
    """The change that a group of a reshape makes; dimensions of size 1 do not count."""

    PASS_THROUGH = "pass_through"
    SPLIT = "split"
    COMBINE = "combine"
    MIXED = "mixed"


class ReshapeGroup(NamedTuple):
    """Consecutive dimensions of the input and of the output with equal numbers of elements.

    Attributes:
        dims: The dimensions of the input.
        out_dims: The dimensions of the output.
        kind: The change that it makes.
    """

    dims: tuple[int, ...]
    out_dims: tuple[int, ...]
    kind: GroupKind


def reshape_groups(shape: Sequence[int], out_shape: Sequence[int]) -> tuple[ReshapeGroup, ...]:
    """The smallest groups of a reshape, in order.

    >>> [(group.dims, group.out_dims, group.kind.value) for group in reshape_groups((6, 10), (3, 2, 10))]
    [((0,), (0, 1), 'split'), ((1,), (2,), 'pass_through')]
    """
    found = []
    dim = out_dim = 0
    while dim < len(shape) or out_dim < len(out_shape):
        first, out_first = dim, out_dim
        volume = out_volume = 1
        if dim < len(shape):
            volume, dim = shape[dim], dim + 1
        if out_dim < len(out_shape):
            out_volume, out_dim = out_shape[out_dim], out_dim + 1
        while volume != out_volume:
            if volume < out_volume and dim < len(shape):
                volume, dim = volume * shape[dim], dim + 1
            elif out_volume < volume and out_dim < len(out_shape):
                out_volume, out_dim = out_volume * out_shape[out_dim], out_dim + 1
            else:
                break
        found.append(_group(range(first, dim), shape, range(out_first, out_dim), out_shape))
    return tuple(found)


def _group(
    dims: Sequence[int], shape: Sequence[int], out_dims: Sequence[int], out_shape: Sequence[int]
) -> ReshapeGroup:
    count = sum(shape[dim] != 1 for dim in dims)
    out_count = sum(out_shape[dim] != 1 for dim in out_dims)
    if count <= 1:
        kind = GroupKind.PASS_THROUGH if out_count <= 1 else GroupKind.SPLIT
    else:
        kind = GroupKind.COMBINE if out_count <= 1 else GroupKind.MIXED
    return ReshapeGroup(tuple(dims), tuple(out_dims), kind)
