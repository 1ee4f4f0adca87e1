"""Results that are partial after an op has run on every device by itself (partitioner spec, section 9.1)."""

from __future__ import annotations

from pyshardy.core.axes import Axes, sort_and_merge, subtract_axes
from pyshardy.core.sharding import ReductionKind
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op, Value
from pyshardy.passes.partitioning.builder import Builder
from pyshardy.passes.partitioning.local.groups import Collectives, Combine, MeshRef
from pyshardy.passes.partitioning.local.localizer import Localizer
from pyshardy.passes.partitioning.meeting import REDUCTION_CODES

_KINDS = {code: kind for kind, code in REDUCTION_CODES.items()}
_ALL_REDUCE = "sdy.all_reduce"


def stays_partial(
    op: Op, result: Value, axes: Axes, kind: ReductionKind | None, mesh: MeshRef, local: Localizer
) -> bool:
    """Whether a result may stay partial along the axes, as it says so or all its users complete it.

    Args:
        op: The op.
        result: One of its results.
        axes: The axes along which the op leaves it partial.
        kind: How the parts combine; None if not in one of the ways that a sharding can name.
        mesh: The mesh, as shardings name it.
        local: What the module's ops share.

    Raises:
        PassError: The result is to be partial along some of the axes only, or in another way.
    """
    if not axes:
        return True
    resolved = local.meshes[mesh] if isinstance(mesh, str) else mesh
    marked = _marked(op, result, axes, kind, local)
    if not subtract_axes(axes, marked, resolved):
        return True
    users = [user for user in result.users() if user.name == _ALL_REDUCE]
    completed = marked + sum((tuple(user.attrs["reduction_axes"]) for user in users), ())
    missing = subtract_axes(axes, completed, resolved)
    if missing and not marked and not _overlap(axes, completed):
        return False
    if missing:
        raise PassError(op, f"gives partial results along {_text(axes)}, which are completed along some of them only")
    for user in result.users():
        if user.name != _ALL_REDUCE or subtract_axes(axes, marked + tuple(user.attrs["reduction_axes"]), resolved):
            raise PassError(
                op,
                f"gives partial results along {_text(axes)} that one user completes and another does not",
                [(user, "uses the partial result")],
            )
        _check_kind(op, kind, _KINDS[user.attrs.get("reduction_op", 0)], axes)
    return True


def _marked(op: Op, result: Value, axes: Axes, kind: ReductionKind | None, local: Localizer) -> Axes:
    """The axes along which the result says that it is partial."""
    sharding = local.sharding(result)
    if sharding is None or not _overlap(axes, sharding.unreduced):
        return ()
    _check_kind(op, kind, sharding.reduction, axes)
    return sharding.unreduced


def _check_kind(op: Op, given: ReductionKind | None, wanted: ReductionKind, axes: Axes) -> None:
    if given is not wanted:
        how = "in a way that no sharding can name" if given is None else f"by {given.value}"
        raise PassError(op, f"combines values {how} along {_text(axes)}, but is to be completed by {wanted.value}")


def _overlap(axes: Axes, others: Axes) -> bool:
    return any(axis.overlaps(other) for axis in axes for other in others)


def _text(axes: Axes) -> str:
    return "{" + ", ".join(map(str, axes)) + "}"


def completed(builder: Builder, value: Value, axes: Axes, combine: Combine, mesh: MeshRef, local: Localizer) -> Value:
    """What the parts on all devices along the axes are together."""
    return Collectives(local, builder, mesh).all_reduce(value, axes, combine)


def merged(axes: Axes, mesh: MeshRef, local: Localizer) -> Axes:
    """The axes in the order of the mesh, neighbours as one."""
    return sort_and_merge(axes, local.meshes[mesh] if isinstance(mesh, str) else mesh)
