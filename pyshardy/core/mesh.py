"""Meshes: named axes over devices.

A mesh lays its devices out in row-major order: the first axis is the slowest. The device at position `p` is
`device_ids[p]` when the mesh gives an explicit order, and `p` otherwise.

Source: docs/semantics/representation.md#meshes
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

from pyshardy.core.intern import Interned, as_integer
from pyshardy.core.jax_values import mesh_axes, mesh_device_ids
from pyshardy.core.options import did_you_mean
from pyshardy.core.text import quote
from pyshardy.errors import InvalidShardingError

MOST_DEVICES = 2**20
"""The most devices for which the package makes something per device, such as a table of offsets."""


class Mesh(Interned):
    """Named axes with sizes, and the order of the devices on them.

    Args:
        axes: Axis names with sizes, major to minor, as a mapping or as pairs; or a `jax.sharding.Mesh` or
            `AbstractMesh`. Sizes are at least 1, names are unique.
        device_ids: A permutation of `range(total size)`, or None for the natural order. Without axes, exactly
            one id makes a *single-device* mesh and no id the *empty* mesh, a placeholder.

    Raises:
        InvalidShardingError: A size below 1, a repeated name, or ids that are not a permutation.

    >>> mesh = Mesh({"data": 4, "model": 2})
    >>> mesh.size, mesh.axis_size("model")
    (8, 2)
    >>> Mesh([("x", 2)], device_ids=[0, 1]) is Mesh([("x", 2)])
    True
    """

    __slots__ = ("axes", "device_ids", "_positions")

    axes: tuple[tuple[str, int], ...]
    device_ids: tuple[int, ...] | None
    _positions: dict[str, int]

    def __new__(  # noqa: D102 (the class docstring says it)
        cls, axes: Mapping[str, int] | Iterable[tuple[str, int]] | Any, device_ids: Iterable[int] | None = None
    ) -> Mesh:
        if isinstance(axes, Mesh):
            device_ids = axes.device_ids if device_ids is None else device_ids
            axes = axes.axes
        pairs = mesh_axes(axes)
        try:
            ids = mesh_device_ids(axes) if device_ids is None else tuple(device_ids)
            return cls._make((pairs, ids))
        except TypeError as error:  # an unhashable value is neither a name, a size nor an id
            got = f"the axes {list(pairs)} and device ids {device_ids!r}"
            raise InvalidShardingError("making a mesh", got=got, needed="names, sizes and ids") from error

    @classmethod
    def _canonical(
        cls, axes: tuple[tuple[str, int], ...], device_ids: tuple[int, ...] | None
    ) -> tuple[tuple[tuple[str, int], ...], tuple[int, ...] | None]:
        axes = _checked_axes(axes)
        if not device_ids:
            return axes, None
        device_ids = _checked_device_ids(axes, device_ids)
        natural = bool(axes) and device_ids == tuple(range(len(device_ids)))
        return axes, None if natural else device_ids

    def __repr__(self) -> str:
        order = f", device_ids={list(self.device_ids)}" if self.device_ids else ""
        return f"Mesh({list(self.axes)}{order})"

    def __str__(self) -> str:
        axes = ", ".join(f"{quote(name)}={size}" for name, size in self.axes)
        order = f", device_ids={list(self.device_ids)}" if self.device_ids else ""
        return f"<[{axes}]{order}>"

    @property
    def positions(self) -> dict[str, int]:
        """Position of every axis name in `axes`, by which lists of axes are sorted. Do not change it."""
        try:
            return self._positions
        except AttributeError:
            found = {name: position for position, (name, _) in enumerate(self.axes)}
            object.__setattr__(self, "_positions", found)
            return found

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The names of the axes, major to minor."""
        return tuple(name for name, _ in self.axes)

    @property
    def size(self) -> int:
        """Number of positions: the product of the axis sizes, 1 without axes."""
        return prod(size for _, size in self.axes)

    @property
    def is_empty(self) -> bool:
        """Whether this is the placeholder mesh, with neither axes nor a device."""
        return not self.axes and self.device_ids is None

    @property
    def is_single_device(self) -> bool:
        """Whether this mesh stands for one device that holds everything."""
        return not self.axes and self.device_ids is not None

    @property
    def device_order(self) -> tuple[int, ...]:
        """The device id at every position; raises `InvalidShardingError` for more than `MOST_DEVICES`."""
        self.check_listable()
        return self.device_ids if self.device_ids is not None else tuple(range(self.size))

    def check_listable(self) -> None:
        """Raise `InvalidShardingError` if there are too many devices to make something for each."""
        check_count(self.size, f"listing the devices of the mesh of {list(self.axes)}", "devices")

    def has_axis(self, name: str) -> bool:
        """Whether the mesh has an axis of this name."""
        return isinstance(name, str) and name in self.positions

    def axis_size(self, name: str) -> int:
        """Size of the axis `name`; raises `InvalidShardingError` if the mesh has no such axis."""
        position = self.positions.get(name) if isinstance(name, str) else None
        if position is None:
            known = ", ".join(map(repr, self.axis_names))
            raise InvalidShardingError(
                "looking up a mesh axis",
                got=f'unknown axis name "{name}"',
                needed=f"one of {known}" if known else "a mesh that has axes",
                hint=did_you_mean(name, self.axis_names),
            )
        return self.axes[position][1]

    def coordinates(self, position: int) -> tuple[int, ...]:
        """Coordinate along every axis of the mesh position `position`, row-major.

        Raises:
            InvalidShardingError: The mesh has no such position.

        >>> Mesh([("x", 2), ("y", 4)]).coordinates(6)
        (1, 2)
        """
        doing = "looking up a position of a mesh"
        position = as_integer(position, doing)
        if not 0 <= position < self.size:
            raise InvalidShardingError(doing, got=str(position), needed=f"one of 0 to {self.size - 1}")
        found = []
        for _, size in reversed(self.axes):
            position, coordinate = divmod(position, size)
            found.append(coordinate)
        return tuple(reversed(found))

    def same_axes(self, other: Mesh) -> bool:
        """Whether both meshes have the same axes; the order of their devices does not matter."""
        return self.is_single_device == other.is_single_device and self.axes == other.axes


def _checked_axes(axes: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    doing = f"making a mesh of {list(axes)}"
    seen = set()
    for name, size in axes:
        if not isinstance(name, str):
            raise InvalidShardingError(doing, got=f"axis name {name!r}", needed="a string")
        size = as_integer(size, doing)
        if size < 1:
            raise InvalidShardingError(doing, got=f'size {size} for axis "{name}"', needed="a size of at least 1")
        if name in seen:
            raise InvalidShardingError(doing, got=f'axis name "{name}" twice', needed="unique axis names")
        seen.add(name)
    return tuple((name, int(size)) for name, size in axes)


def _checked_device_ids(axes: tuple[tuple[str, int], ...], device_ids: tuple[int, ...]) -> tuple[int, ...]:
    doing = f"ordering the devices of a mesh of {list(axes)}"
    device_ids = tuple(as_integer(device, doing) for device in device_ids)
    negative = [device for device in device_ids if device < 0]
    if negative:
        raise InvalidShardingError(doing, got=f"device id {negative[0]}", needed="ids of at least 0")
    if not axes:
        if len(device_ids) > 1:
            raise InvalidShardingError(
                doing, got=f"{len(device_ids)} device ids without axes", needed="axes, or exactly one device id"
            )
        return device_ids
    total = prod(size for _, size in axes)
    if len(device_ids) != total:
        raise InvalidShardingError(
            doing, got=f"{len(device_ids)} device ids", needed=f"{total}, the product of the axis sizes"
        )
    if sorted(device_ids) != list(range(total)):
        raise InvalidShardingError(
            doing, got=f"device ids {list(device_ids)}", needed=f"a permutation of 0 to {total - 1}"
        )
    return device_ids


def check_count(count: int, doing: str, what: str) -> None:
    """Raise `InvalidShardingError` if there are too many devices or shards to make something for each."""
    if count > MOST_DEVICES:
        raise InvalidShardingError(
            doing,
            got=f"{count} {what}",
            needed=f"at most {MOST_DEVICES}, as something is made for each of them",
            hint="a smaller mesh; groups of devices as axes of a mesh (--mesh-axes-groups) need no list",
        )


def as_mesh(mesh: Any) -> Mesh:
    """A mesh from a `Mesh`, from names with sizes, or from a mesh of JAX.

    >>> as_mesh({"x": 2})
    Mesh([('x', 2)])
    """
    return mesh if isinstance(mesh, Mesh) else Mesh(mesh)


def largest_mesh(meshes: Mapping[str, Mesh]) -> Mesh | None:
    """The mesh over all devices of a program; None if no mesh has axes.

    >>> largest_mesh({"one": Mesh([], [3]), "few": Mesh([("x", 2)]), "all": Mesh([("x", 4)])})
    Mesh([('x', 4)])
    """
    return max((mesh for mesh in meshes.values() if mesh.axes), key=lambda mesh: mesh.size, default=None)


def device_count(meshes: Mapping[str, Mesh]) -> int:
    """Number of devices of a program with these meshes."""
    mesh = largest_mesh(meshes)
    return 1 if mesh is None else mesh.size
