"""Partial results of ops that run on shards.

Source: docs/semantics/partitioner.md#partial-results-on-shards
"""

from __future__ import annotations

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import sort_and_merge, subtract_axes
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import ReductionKind
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op, Value
from pyshardy.transforms.builder import Builder
from pyshardy.transforms.local.groups import Collectives, Combine, MeshRef
from pyshardy.transforms.local.localizer import Localizer
from pyshardy.transforms.reshards.operand_shardings import all_reduce_kind

_ALL_REDUCE = "sdy.all_reduce"


def stays_partial(
    op: Op, result: Value, axes: Axes, kind: ReductionKind | None, mesh: MeshRef, local: Localizer
) -> bool:
    """Whether a result may stay partial along the axes, because its sharding says so or all its users complete it.

    Args:
        op: The op.
        result: One of its results.
        axes: The axes along which the op leaves it partial.
        kind: How the parts combine; None if no reduction kind of shardings fits.
        mesh: The mesh, as shardings refer to it.
        local: The state of this run.

    Raises:
        PassError: The result stays partial along some of the axes only, or combines in another way.
    """
    wanted = wanted_kind(op, result, axes, mesh, local)
    if wanted is not None and wanted is not kind:
        how = "in a way that no sharding can name" if kind is None else f"by {kind.value}"
        raise PassError(op, f"combines values {how} along {_text(axes)}, but the result is completed by {wanted.value}")
    return wanted is not None


def wanted_kind(op: Op, result: Value, axes: Axes, mesh: MeshRef, local: Localizer) -> ReductionKind | None:
    """The reduction that later completes a result that is partial along the axes; None if nothing does.

    Raises:
        PassError: The result is marked, or completed, along some of the axes only, or by some users only.
    """
    resolved = local.meshes[mesh] if isinstance(mesh, str) else mesh
    sharding = local.sharding(result)
    if sharding is not None and is_marked(result, axes, resolved, local):
        return sharding.reduction
    marked = sharding.unreduced if sharding is not None else ()
    users = [user for user in result.users() if user.name == _ALL_REDUCE]
    completed = marked + sum((tuple(user.attrs["reduction_axes"]) for user in users), ())
    if not any(axis.overlaps(other) for axis in axes for other in completed):
        return None
    for user in result.users():
        given = marked + tuple(user.attrs["reduction_axes"]) if user in users else marked
        if subtract_axes(axes, given, resolved):
            raise PassError(
                op,
                f"gives results that are partial along {_text(axes)}, but some users complete only some of these axes",
                [(user, "uses the partial result")],
            )
    if not users:
        raise PassError(
            op, f"gives results that are partial along {_text(axes)}, but is marked as partial along {_text(marked)}"
        )
    kinds = {all_reduce_kind(user) for user in users}
    if len(kinds) > 1:
        raise PassError(op, f"gives results that are partial along {_text(axes)} and completed in several ways")
    return kinds.pop()


def is_marked(result: Value, axes: Axes, mesh: Mesh, local: Localizer) -> bool:
    """Whether a result is unreduced along the axes, according to its sharding."""
    sharding = local.sharding(result)
    return sharding is not None and not subtract_axes(axes, sharding.unreduced, mesh)


def is_completed_by(result: Value, axes: Axes, mesh: Mesh) -> bool:
    """Whether all users of a result are all-reduces along exactly these axes."""
    return all(
        user.name == _ALL_REDUCE
        and not subtract_axes(user.attrs["reduction_axes"], axes, mesh)
        and not subtract_axes(axes, user.attrs["reduction_axes"], mesh)
        for user in result.users()
    )


def _text(axes: Axes) -> str:
    return "{" + ", ".join(map(str, axes)) + "}"


def completed(
    op: Op, builder: Builder, value: Value, axes: Axes, combine: Combine, mesh: MeshRef, local: Localizer
) -> Value:
    """All-reduce the result of an op along the axes."""
    return Collectives(local, builder, mesh, op).all_reduce(value, axes, combine)


def in_mesh_order(axes: Axes, mesh: MeshRef, local: Localizer) -> Axes:
    """The axes in the order of the mesh, with neighbours merged."""
    key = (axes, mesh)
    if key not in local.merged:
        local.merged[key] = sort_and_merge(axes, local.meshes[mesh] if isinstance(mesh, str) else mesh)
    return local.merged[key]
