"""Checks of a list of axis references: types, overlap, neighbours that should be merged, axes of the mesh."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.given import as_tuple
from pyshardy.core.mesh import Mesh
from pyshardy.errors import InvalidShardingError

_ONLY_REFS = {AxisRef}


def as_axes(axes: Iterable[AxisRef | str]) -> Axes:
    """References from references and axis names; raises `InvalidShardingError` for anything else."""
    if type(axes) is tuple and (not axes or {*map(type, axes)} == _ONLY_REFS):
        return axes
    if isinstance(axes, str):
        raise InvalidShardingError(
            "listing axes", got=f"the string {axes!r}", needed="a list of axes", hint=f"[{axes!r}]"
        )
    given = as_tuple(axes, "listing axes", "a list of axes, by name or as AxisRef")
    found = tuple(AxisRef(axis) if isinstance(axis, str) else axis for axis in given)
    check_axis_types(found, "listing axes")
    return found


def check_axis_types(axes: Sequence[object], doing: str) -> None:
    """Raise `InvalidShardingError` if anything else than an `AxisRef` is listed."""
    for axis in axes:
        if type(axis) is not AxisRef:
            raise InvalidShardingError(doing, got=f"{axis!r} as an axis", needed="the name of an axis, or an AxisRef")


def check_disjoint(axes: Sequence[AxisRef], doing: str) -> None:
    """Raise `InvalidShardingError` if any two references overlap."""
    if len({axis.name for axis in axes}) == len(axes):
        return
    by_name: dict[str, list[AxisRef]] = {}
    for axis in axes:
        for other in by_name.get(axis.name, ()):
            if axis is other:
                raise InvalidShardingError(doing, got=f"axis {axis} twice", needed="every axis at most once")
            if axis.overlaps(other):
                kind = "the full axis" if axis.is_full or other.is_full else "an overlapping part"
                raise InvalidShardingError(
                    doing, got=f"{other} and {axis}", needed=f"no reference together with {kind}"
                )
        by_name.setdefault(axis.name, []).append(axis)


def check_merged(axes: Sequence[AxisRef], doing: str) -> None:
    """Raise `InvalidShardingError` if two neighbours should be written as one reference."""
    for major, minor in zip(axes, axes[1:]):
        if major.can_merge(minor):
            raise InvalidShardingError(
                doing, got=f"the consecutive sub-axes {major} and {minor}", needed="the one sub-axis they make"
            )


def check_axes_in_mesh(axes: Iterable[AxisRef], mesh: Mesh, doing: str) -> None:
    """Raise `InvalidShardingError` unless every reference fits its axis in the mesh."""
    for axis in axes:
        try:
            total = mesh.axis_size(axis.name)
        except InvalidShardingError as error:
            raise error.located(doing) from None
        if axis.size is None:
            continue
        if total % axis.end(mesh):
            raise InvalidShardingError(
                doing, got=f"sub-axis {axis}", needed=f'an end that divides {total}, the size of axis "{axis.name}"'
            )
        if axis.size == total:
            raise InvalidShardingError(
                doing, got=f"sub-axis {axis} of the full size {total}", needed=f'the full axis "{axis.name}"'
            )
