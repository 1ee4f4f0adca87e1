"""Shardings to the axes of factors and back, for inserting reshards.

This is the projection of propagation, with two differences. A tensor without a sharding counts as closed. A factor
behind an overflow counts as not sharded.

Source: docs/semantics/reshards-and-collectives.md#ops-with-a-rule
"""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import axes_size
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.propagation.projection import TensorState, project, unproject
from pyshardy.rules.rule import Rule, TensorMapping


def project_tensors(rule: Rule, shardings: Sequence[TensorSharding | None], mesh: Mesh) -> list[TensorState]:
    """The factors of all tensors of an op, operands first.

    >>> from pyshardy.core.notation import parse_sharding
    >>> from pyshardy.rules.notation import parse_rule
    >>> rule = parse_rule("<([ij])->([i, j]) {i=2, j=6}>")
    >>> mesh = Mesh([("x", 4)])
    >>> states = project_tensors(rule, [parse_sharding('<@m, [{"x"}]>'), None], mesh)
    >>> states[0].factors[0].axes, states[0].factors[1].axes
    ((AxisRef('x', 1, 2),), (AxisRef('x', 2, 2),))
    """
    return [project_tensor(rule, mapping, sharding, mesh) for sharding, mapping in zip(shardings, rule.tensors)]


def project_tensor(rule: Rule, mapping: TensorMapping, sharding: TensorSharding | None, mesh: Mesh) -> TensorState:
    """The factors of a tensor whose dimensions consist of the factors in `mapping`."""
    if sharding is None:
        sharding = TensorSharding.fully_replicated(mesh, len(mapping))
    return project(sharding, mapping, rule.factor_sizes, mesh)


def rebuild(
    state: TensorState, mapping: TensorMapping, rule: Rule, mesh: Mesh, ref: str | Mesh, old: TensorSharding | None
) -> TensorSharding:
    """The sharding of the factors of a tensor; all but the dimensions comes from the old sharding.

    Args:
        state: The factors.
        mapping: The factors of every dimension.
        rule: The rule that the mapping belongs to.
        mesh: The mesh.
        ref: The mesh as the sharding names it.
        old: The sharding that the tensor had.
    """
    dims = unproject(state, mapping, rule.factor_sizes, mesh)
    if old is None:
        return TensorSharding(ref, dims)
    return TensorSharding(ref, dims, old.replicated, old.unreduced, old.reduction)


def axes_of_tensor(state: TensorState) -> Axes:
    """All axes of a tensor, by factor number, each factor with its overflow."""
    found: list[Axes] = []
    for _, factor in sorted(state.factors.items()):
        found += factor.axes, factor.overflow
    return sum(found, ())


def shard_count(state: TensorState, mesh: Mesh) -> int:
    """The number of shards that all axes of a tensor make."""
    return axes_size(axes_of_tensor(state), mesh)


def has_overflow(state: TensorState) -> bool:
    """Whether some axes fit into no factor."""
    return any(factor.overflow for factor in state.factors.values())


def assign(states: Sequence[TensorState], common: Sequence[Axes]) -> set[int]:
    """Give every factor of every tensor the common axes, in place; return the tensors that this changes."""
    return {index for index, state in enumerate(states) if _assign(state, common)}


def _assign(state: TensorState, common: Sequence[Axes]) -> bool:
    changed = False
    for number, factor in state.factors.items():
        if factor.axes != common[number] or factor.overflow:
            factor.axes, factor.overflow = common[number], ()
            changed = True
    return changed
