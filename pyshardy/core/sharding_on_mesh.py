"""Shardings together with their meshes: whether one fits, which mesh it is on, how many shards it makes.

Source: docs/semantics/representation.md#shardings
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyshardy.core.axis_checks import check_axes_in_mesh, check_merged
from pyshardy.core.axis_lists import axes_size, sort_axes
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.text import format_symbol
from pyshardy.errors import InvalidShardingError

Meshes = Mapping[str, Mesh]


def check_sharding(sharding: TensorSharding, mesh: Mesh, rank: int) -> None:
    """Raise `InvalidShardingError` unless the sharding fits the mesh and a tensor of this rank.

    >>> check_sharding(TensorSharding("m", ["x"]), Mesh([("x", 2)]), rank=1)
    """
    doing = f"checking the sharding {sharding}"
    if mesh.is_single_device:
        if sharding.dims or sharding.replicated or sharding.unreduced:
            raise InvalidShardingError(
                doing, got="dimensions or axes on a single-device mesh", needed="rank 0 and no axes"
            )
        return
    if sharding.rank != rank:
        raise InvalidShardingError(doing, got=f"{sharding.rank} dimensions", needed=f"{rank}, the rank of the tensor")
    check_axes_in_mesh(sharding.all_axes(), mesh, doing)
    for kind, axes in (("replicated", sharding.replicated), ("unreduced", sharding.unreduced)):
        check_merged(axes, doing)
        ordered = sort_axes(axes, mesh)
        if list(axes) != ordered:
            raise InvalidShardingError(
                doing,
                got=f"{kind} axes {', '.join(map(str, axes))}",
                needed=f"the order of the mesh: {', '.join(map(str, ordered))}",
            )


def mesh_of(sharding: TensorSharding, meshes: Meshes) -> Mesh:
    """The mesh of a sharding; raises `InvalidShardingError` for an unknown mesh name."""
    if isinstance(sharding.mesh, Mesh):
        return sharding.mesh
    found = meshes.get(sharding.mesh)
    if found is None:
        known = ", ".join(map(format_symbol, meshes)) or "a mesh; the module has none"
        raise InvalidShardingError(
            f"looking up the mesh of {sharding}", got=f"unknown mesh {format_symbol(sharding.mesh)}", needed=known
        )
    return found


def common_mesh(
    shardings: Iterable[TensorSharding | None], meshes: Meshes, ignore_device_order: bool = False
) -> tuple[str | Mesh, Mesh] | None:
    """The mesh that all present shardings agree on, as written and resolved; None if there is none.

    Empty meshes agree with any other. Among equal meshes under different names the first name wins; with
    `ignore_device_order`, a later mesh in natural device order replaces one with the same axes.
    """
    ref: str | Mesh | None = None
    mesh: Mesh | None = None
    for sharding in shardings:
        if sharding is None or sharding.mesh == ref:
            continue
        candidate = mesh_of(sharding, meshes)
        if mesh is None or mesh.is_empty:
            ref, mesh = sharding.mesh, candidate
        elif candidate.is_empty or candidate is mesh:
            continue
        elif not ignore_device_order or not mesh.same_axes(candidate):
            return None
        elif candidate.device_ids is None:
            ref, mesh = sharding.mesh, candidate
    return None if ref is None or mesh is None else (ref, mesh)


def shard_counts(sharding: TensorSharding, mesh: Mesh) -> tuple[int, ...]:
    """Number of shards of every dimension."""
    return tuple(axes_size(dim.axes, mesh) for dim in sharding.dims)
