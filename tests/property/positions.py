"""A model of axes without any algebra: the labels that a list of references gives to the positions of a mesh.

Two positions have the same label if they have the same coordinate along every reference, so a list of references
is a partition of the positions. What the algebra claims about references is checked on these partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from pyshardy.core.axes import AxisRef
from pyshardy.core.mesh import Mesh

Label = tuple[int, ...]


def along(axis: AxisRef, size: int) -> list[int]:
    """Coordinate along the reference of every place on an axis of that size, by writing the places out as a grid."""
    if axis.size is None:
        return list(range(size))
    rest = size // (axis.pre_size * axis.size)
    return [middle for _, middle, _ in product(range(axis.pre_size), range(axis.size), range(rest))]


def labels(axes: Sequence[AxisRef], mesh: Mesh) -> list[Label]:
    """The coordinates along all references of every position of the mesh."""
    columns = {axis: along(axis, mesh.axis_size(axis.name)) for axis in axes}
    places = product(*(range(size) for _, size in mesh.axes))
    at = {name: index for index, name in enumerate(mesh.axis_names)}
    return [tuple(columns[axis][place[at[axis.name]]] for axis in axes) for place in places]


def count(axes: Sequence[AxisRef], mesh: Mesh) -> int:
    """The number of different labels."""
    return len(set(labels(axes, mesh)))


def refines(fine: Sequence[AxisRef], coarse: Sequence[AxisRef], mesh: Mesh) -> bool:
    """Whether the label of `fine` determines the label of `coarse`."""
    return len(set(zip(labels(fine, mesh), labels(coarse, mesh)))) == count(fine, mesh)


def same_partition(first: Sequence[AxisRef], second: Sequence[AxisRef], mesh: Mesh) -> bool:
    """Whether both lists tell the same positions apart."""
    return refines(first, second, mesh) and refines(second, first, mesh)


def independent(first: Sequence[AxisRef], second: Sequence[AxisRef], mesh: Mesh) -> bool:
    """Whether every label of one goes with every label of the other: nothing is shared."""
    return count((*first, *second), mesh) == count(first, mesh) * count(second, mesh)


def number(label: Label, axes: Sequence[AxisRef], mesh: Mesh) -> int:
    """The label as one number, first coordinate most significant: the shard that a dimension so split gives."""
    found = 0
    for coordinate, axis in zip(label, axes):
        found = found * (mesh.axis_size(axis.name) if axis.size is None else axis.size) + coordinate
    return found
