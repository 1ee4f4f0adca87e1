"""Reversing sharded dimensions: the mesh on which that moves nothing, and the shift before (partitioner spec, 3.7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pyshardy.core.axes import AxisRef
from pyshardy.core.boxes import coordinate_along
from pyshardy.core.mesh import Mesh


def reversed_mesh(mesh: Mesh, axes: Iterable[AxisRef]) -> Mesh:
    """The mesh with the order of its devices reversed along some axes.

    >>> reversed_mesh(Mesh([("x", 2), ("y", 3)]), [AxisRef("y")])
    Mesh([('x', 2), ('y', 3)], device_ids=[2, 1, 0, 5, 4, 3])
    """
    order = mesh.device_order
    axes = tuple(axes)
    return Mesh(mesh.axes, [order[_mirrored(mesh, position, axes)] for position in range(mesh.size)])


def _mirrored(mesh: Mesh, position: int, axes: tuple[AxisRef, ...]) -> int:
    coordinates = mesh.coordinates(position)
    found = list(coordinates)
    for axis in axes:
        here = coordinate_along(axis, mesh, coordinates)
        unit = mesh.axis_size(axis.name) // axis.end(mesh)
        found[mesh.positions[axis.name]] += (axis.length(mesh) - 1 - 2 * here) * unit
    index = 0
    for (_, size), coordinate in zip(mesh.axes, found):
        index = index * size + coordinate
    return index


class Shift(NamedTuple):
    """How padding moves from behind the data to its front.

    Attributes:
        hops: How many shards further behind the first part of the data of a shard goes; the rest goes one more.
        kept: Size of that first part.
    """

    hops: int
    kept: int


def shift_of(size: int, shards: int) -> Shift:
    """How to move the padding of a dimension.

    >>> shift_of(18, 4)
    Shift(hops=0, kept=3)
    """
    shard = -(-size // shards)
    hops, rest = divmod(shard * shards - size, shard)
    return Shift(hops, shard - rest)
