"""The check that an op neither drops unreduced axes nor adds any that it may not add.

Source: docs/semantics/export.md#sdy-verify-unreduced-axes
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import lists_overlap, subtract_axes
from pyshardy.core.sharding import ReductionKind, TensorSharding
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op

Kinds = frozenset[ReductionKind]
ANY_KIND: Kinds = frozenset(ReductionKind)
NO_KIND: Kinds = frozenset()


def check_transition(
    op: Op,
    sources: Iterable[TensorSharding | None],
    results: Iterable[TensorSharding | None],
    meshes: Meshes,
    may_add: Kinds,
    may_drop: Kinds,
) -> None:
    """Compare the unreduced axes of the operands of an op with those of its results.

    Tensors on different meshes are not compared.

    Args:
        op: The op.
        sources: The shardings of the operands.
        results: The shardings of the results.
        meshes: The meshes of the module.
        may_add: The reductions that partial results of the op may have; empty if it gives none.
        may_drop: The reductions of partial values that the op may complete; empty if it completes none.

    Raises:
        PassError: The op must not add or drop an axis, or changes its reduction.
    """
    given = [sharding for sharding in sources if sharding is not None]
    made = [sharding for sharding in results if sharding is not None]
    found = {mesh_of(sharding, meshes): None for sharding in given + made}
    if len(found) != 1:
        return
    mesh = next(iter(found))
    before, after = _unreduced(given), _unreduced(made)
    added, dropped = subtract_axes(after, before, mesh), subtract_axes(before, after, mesh)
    if added:
        _check_kinds(op, "gives partial results", added, made, may_add)
    if dropped:
        _check_kinds(op, "drops the unreduced axes of its operands", dropped, given, may_drop)
    _check_kept(op, given, made)


def _unreduced(shardings: Sequence[TensorSharding]) -> Axes:
    return sum((sharding.unreduced for sharding in shardings), ())


def _check_kinds(op: Op, what: str, axes: Axes, shardings: Sequence[TensorSharding], allowed: Kinds) -> None:
    if not allowed:
        hint = "" if what.startswith("gives") else "; only a reshard, an all-reduce or a reduce-scatter may"
        raise PassError(op, f"{what} along {axes[0]}, which this op cannot{hint}")
    for sharding in shardings:
        if sharding.reduction not in allowed and lists_overlap(sharding.unreduced, axes):
            needed = " or ".join(sorted(kind.value for kind in allowed))
            raise PassError(op, f"{what} along {axes[0]} combined by {sharding.reduction.value}, needed {needed}")


def _check_kept(op: Op, given: Sequence[TensorSharding], made: Sequence[TensorSharding]) -> None:
    for result in made:
        for source in given:
            if source.reduction is not result.reduction and lists_overlap(result.unreduced, source.unreduced):
                raise PassError(
                    op,
                    f"keeps unreduced axes but changes how they combine, from {source.reduction.value} to "
                    f"{result.reduction.value}",
                )
