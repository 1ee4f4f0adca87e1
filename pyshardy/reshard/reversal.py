"""Reversing sharded dimensions: a mesh on which no data moves, and the shift before it.

Source: docs/semantics/partitioner.md#reversed-dimensions
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pyshardy.core.axes import AxisRef
from pyshardy.core.axis_lists import ordered_refs
from pyshardy.core.mesh import Mesh


def reversed_mesh(mesh: Mesh, axes: Iterable[AxisRef]) -> Mesh:
    """The mesh with the order of its devices reversed along some axes.

    >>> reversed_mesh(Mesh([("x", 2), ("y", 3)]), [AxisRef("y")])
    Mesh([('x', 2), ('y', 3)], device_ids=[2, 1, 0, 5, 4, 3])
    """
    order, axes = mesh.device_order, tuple(axes)
    positions = [0]
    for atom in ordered_refs(mesh, axes):
        length = atom.length(mesh)
        numbers = range(length)[::-1] if any(axis.contains(atom) for axis in axes) else range(length)
        positions = [position * length + number for position in positions for number in numbers]
    return Mesh(mesh.axes, [order[position] for position in positions])


class Shift(NamedTuple):
    """How padding moves from the end of the data to its start.

    Attributes:
        hops: How many shards ahead the first part of a shard's data moves; the rest moves one shard more.
        kept: Size of that first part.
    """

    hops: int
    kept: int


def shift_of(size: int, shards: int) -> Shift:
    """The shift of the padding of a dimension.

    >>> shift_of(18, 4)
    Shift(hops=0, kept=3)
    """
    shard = -(-size // shards)
    hops, rest = divmod(shard * shards - size, shard)
    return Shift(hops, shard - rest)
