"""Where a device stands in the grid that some axes span, and which devices form a group.

A list of axes spans a grid, first axis most major. Every device of the mesh has an index in that grid. The devices
that differ only along these axes form a group.

Source: docs/semantics/partitioner.md#devices-and-groups
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.axis_lists import append_or_merge, axes_size, ordered_refs
from pyshardy.core.boxes import coordinate_along
from pyshardy.core.grids import is_grid
from pyshardy.core.intern import register_cache
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import shard_counts
from pyshardy.errors import InvalidShardingError

Groups = tuple[tuple[int, ...], ...]
"""Groups of device ids."""


@lru_cache(maxsize=1024)
def shard_indices(axes: Axes, mesh: Mesh) -> tuple[int, ...]:
    """The index of every device in the grid of `axes`, by device id.

    >>> from pyshardy.core.axes import AxisRef
    >>> shard_indices((AxisRef("y"),), Mesh([("x", 2), ("y", 2)]))
    (0, 1, 0, 1)
    >>> shard_indices((AxisRef("x"),), Mesh([("x", 2), ("y", 2)], device_ids=[3, 1, 2, 0]))
    (1, 0, 1, 0)
    """
    mesh.check_listable()
    if not is_grid(axes):
        return _indices_one_by_one(axes, mesh)
    weights = [axes_size(axes[place + 1 :], mesh) for place in range(len(axes))]
    by_position = [0]
    for atom in ordered_refs(mesh, axes):
        step = sum(
            weight * (axis.end(mesh) // atom.end(mesh)) for axis, weight in zip(axes, weights) if axis.contains(atom)
        )
        steps = [number * step for number in range(atom.length(mesh))]
        by_position = [index + more for index in by_position for more in steps]
    if mesh.device_ids is None:
        return tuple(by_position)
    found = [0] * mesh.size
    for device, index in zip(mesh.device_ids, by_position):
        found[device] = index
    return tuple(found)


register_cache(shard_indices.cache_clear)


def _indices_one_by_one(axes: Axes, mesh: Mesh) -> tuple[int, ...]:
    """The same as `shard_indices`, for sub-axes that cannot coexist."""
    found = [0] * mesh.size
    for position, device in enumerate(mesh.device_order):
        coordinates = mesh.coordinates(position)
        index = 0
        for axis in axes:
            index = index * axis.length(mesh) + coordinate_along(axis, mesh, coordinates)
        found[device] = index
    return tuple(found)


@lru_cache(maxsize=1024)
def replica_groups(axes: Axes, mesh: Mesh) -> Groups:
    """The groups of devices that differ only along `axes`, each in the order of the grid of `axes`.

    Groups are ordered by their position along all other axes, in mesh order.

    >>> from pyshardy.core.axes import AxisRef
    >>> replica_groups((AxisRef("z"), AxisRef("y")), Mesh([("x", 2), ("y", 2), ("z", 2)]))
    ((0, 2, 1, 3), (4, 6, 5, 7))
    """
    rest = tuple(ref for ref in ordered_refs(mesh, axes) if not any(axis.overlaps(ref) for axis in axes))
    rows, columns = shard_indices(rest, mesh), shard_indices(axes, mesh)
    groups = [[0] * axes_size(axes, mesh) for _ in range(axes_size(rest, mesh))]
    for device in range(mesh.size):
        groups[rows[device]][columns[device]] = device
    return tuple(map(tuple, groups))


register_cache(replica_groups.cache_clear)


@lru_cache(maxsize=1024)
def permutation(before: TensorSharding, before_mesh: Mesh, after: TensorSharding, mesh: Mesh) -> tuple[int, ...]:
    """For every device, the device that its shard moves to when the number of shards of the tensor stays the same.

    Both meshes have the same axes, but may order their devices differently.

    Raises:
        InvalidShardingError: The number of devices that hold a shard changes.

    >>> from pyshardy.core.axes import AxisRef
    >>> from pyshardy.core.sharding import DimSharding
    >>> before, after = (TensorSharding("m", [DimSharding(axes)]) for axes in (["x", "y"], ["y", "x"]))
    >>> mesh = Mesh([("x", 2), ("y", 4)])
    >>> permutation(before, mesh, after, mesh)
    (0, 4, 1, 5, 2, 6, 3, 7)
    """
    axes = (*_dim_axes(before), *_dim_axes(after))
    if not is_grid(axes):
        return _pairs(shard_indices(_dim_axes(before), before_mesh), shard_indices(_dim_axes(after), mesh))
    atoms = ordered_refs(mesh, axes)
    sources = shard_indices(_all_atoms(before, atoms), before_mesh)
    targets = {index: device for device, index in enumerate(shard_indices(_all_atoms(after, atoms), mesh))}
    return tuple(targets[index] for index in sources)


register_cache(permutation.cache_clear)


@lru_cache(maxsize=1024)
def shift_pairs(axes: Axes, mesh: Mesh, step: int) -> Groups:
    """Source and target device of a shift by `step` shards along the grid of `axes`, ordered by source in the mesh.

    >>> from pyshardy.core.axes import AxisRef
    >>> shift_pairs((AxisRef("y"),), Mesh([("x", 2), ("y", 3)]), -1)
    ((1, 0), (2, 1), (4, 3), (5, 4))
    """
    targets: dict[int, int] = {}
    for group in replica_groups(axes, mesh):
        sources = group[max(0, -step) : max(0, len(group) - max(0, step))]
        targets.update(zip(sources, group[max(0, step) :]))
    return tuple((device, targets[device]) for device in mesh.device_order if device in targets)


register_cache(shift_pairs.cache_clear)


def _pairs(sources: Sequence[int], targets: Sequence[int]) -> tuple[int, ...]:
    """For every device, the device that receives its shard; holders and receivers of a shard pair up in device order.

    >>> _pairs((0, 0, 1, 1), (1, 0, 1, 0))
    (1, 3, 0, 2)

    Raises:
        InvalidShardingError: A shard has more holders than receivers, or fewer.
    """
    if sorted(sources) != sorted(targets):
        raise InvalidShardingError(
            "sending every shard to one device",
            got="parts of an axis that do not fit each other, so that some shards have more holders than receivers",
            needed="as many holders as receivers of every shard",
        )
    takers: dict[int, deque[int]] = {}
    for device, shard in enumerate(targets):
        takers.setdefault(shard, deque()).append(device)
    return tuple(takers[shard].popleft() for shard in sources)


def _dim_axes(sharding: TensorSharding) -> Axes:
    return sum(sharding.dim_axes, ())


def _all_atoms(sharding: TensorSharding, atoms: Axes) -> Axes:
    """The atoms that shard a dimension, in the order of the dimensions, then all others."""
    first = dict.fromkeys(atom for axis in _dim_axes(sharding) for atom in atoms if axis.contains(atom))
    return (*first, *(atom for atom in atoms if atom not in first))


def padded_shape(sharding: TensorSharding | None, mesh: Mesh, shape: Sequence[int]) -> tuple[int, ...]:
    """The shape with every dimension rounded up to a multiple of its shard count; a dynamic size, -1, stays.

    >>> from pyshardy.core.sharding import DimSharding
    >>> padded_shape(TensorSharding("m", [DimSharding(["x"]), DimSharding()]), Mesh([("x", 4)]), (10, 3))
    (12, 3)
    """
    if sharding is None or not sharding.dims:
        return tuple(shape)
    counts: Iterable[int] = shard_counts(sharding, mesh)
    return tuple(size if size < 0 else -(-size // count) * count for size, count in zip(shape, counts, strict=True))


def axes_of_groups(groups: Groups, mesh: Mesh) -> Axes | None:
    """The axes that make these groups: the inverse of `replica_groups`; None if no axes do.

    The order of the groups does not matter.

    >>> from pyshardy.core.axes import AxisRef
    >>> mesh = Mesh([("x", 2), ("y", 4)])
    >>> axes_of_groups(replica_groups((AxisRef("y", 2, 2), AxisRef("x")), mesh), mesh)
    (AxisRef('y', 2, 2), AxisRef('x'))
    >>> axes_of_groups(((0, 3), (1, 2)), Mesh([("x", 2), ("y", 2)])) is None
    True
    """
    if sum(map(len, groups)) != mesh.size:
        return None
    if sorted(device for group in groups for device in group) != list(range(mesh.size)):
        return None
    order = {device: position for position, device in enumerate(mesh.device_order)}
    places = [order[device] for device in groups[0]]
    strides = {}
    for atom in _prime_atoms(mesh):
        step = _stride(atom, mesh)
        if places[0] + step in places and places[0] // step % atom.length(mesh) == 0:
            strides[atom] = places.index(places[0] + step)
    axes: list[AxisRef] = []
    for atom in sorted(strides, key=lambda atom: -strides[atom]):
        append_or_merge(axes, atom, mesh)
    found = tuple(axes)
    return found if set(replica_groups(found, mesh)) == set(groups) else None


def axes_moved(pairs: Iterable[tuple[int, int]], mesh: Mesh) -> Axes:
    """The axes along which some sender and its receiver differ, in mesh order.

    >>> axes_moved([(0, 1), (1, 0), (2, 2)], Mesh([("x", 2), ("y", 2)]))
    (AxisRef('y'),)
    """
    order = {device: position for position, device in enumerate(mesh.device_order)}
    moves = [(order[source], order[target]) for source, target in pairs if source in order and target in order]
    axes: list[AxisRef] = []
    for atom in _prime_atoms(mesh):
        step, size = _stride(atom, mesh), atom.length(mesh)
        if any(source // step % size != target // step % size for source, target in moves):
            append_or_merge(axes, atom, mesh)
    return tuple(axes)


@lru_cache(maxsize=64)
def _prime_atoms(mesh: Mesh) -> Axes:
    """All axes cut into sub-axes of prime size, in mesh order."""
    found: list[AxisRef] = []
    for name, size in mesh.axes:
        pre = 1
        while pre < size:
            factor = next(factor for factor in range(2, size + 1) if size // pre % factor == 0)
            found.append(AxisRef(name) if factor == size else AxisRef(name, pre, factor))
            pre *= factor
    return tuple(found)


register_cache(_prime_atoms.cache_clear)


def _stride(axis: AxisRef, mesh: Mesh) -> int:
    """The distance between neighbours along a reference, in mesh positions."""
    behind = mesh.axes[mesh.positions[axis.name] + 1 :]
    return prod(size for _, size in behind) * (mesh.axis_size(axis.name) // axis.end(mesh))
