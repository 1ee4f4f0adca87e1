"""The axes that the tensors of one op should share, factor by factor.

The tensors of an op are *compatible* when every factor has the same axes in all of them. If they are not, one list
of axes is chosen per factor such that as little data as possible moves.

Source: docs/semantics/reshards-and-collectives.md#ops-with-a-rule
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import lists_overlap, truncate_overlaps
from pyshardy.core.intern import register_cache
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.propagation.projection import TensorState, axes_if_same
from pyshardy.reshard.factors import axes_of_tensor, has_overflow, project_tensors, shard_count
from pyshardy.reshard.greedy import choose_greedily
from pyshardy.rules.rule import FactorKind, Rule


def common_axes(
    rule: Rule, states: Sequence[TensorState], element_counts: Sequence[int], mesh: Mesh
) -> tuple[Axes, ...]:
    """The axes of every factor, to be used in all tensors that have it.

    Args:
        rule: The rule of the op.
        states: The factors of all tensors, operands first.
        element_counts: Number of elements of every tensor; 0 if it is not static.
        mesh: The mesh of the op.

    >>> from pyshardy.core.notation import parse_sharding
    >>> from pyshardy.reshard.factors import project_tensors
    >>> from pyshardy.rules.notation import parse_rule
    >>> add = parse_rule("<([i, j], [i, j])->([i, j]) {i=8, j=8}>")
    >>> mesh = Mesh([("a", 2)])
    >>> left, right = parse_sharding('<@m, [{"a"}, {}]>'), parse_sharding('<@m, [{}, {"a"}]>')
    >>> common_axes(add, project_tensors(add, [left, right, None], mesh), [64, 64, 64], mesh)
    ((), (AxisRef('a'),))
    """
    agreed = agreed_axes(rule, states)
    if agreed is not None:
        return agreed
    ranked = [index for index, mapping in enumerate(rule.tensors) if mapping]
    if len(ranked) == 2 and not rule.factors_of(FactorKind.NEED_REPLICATION) and not rule.has_compound_dims:
        first, second = ranked
        if _preference(rule, states[second], element_counts[second], mesh) > _preference(
            rule, states[first], element_counts[first], mesh
        ):
            first, second = second, first
        return _keep_one(rule, states[first], states[second])
    return choose_greedily(rule, states, element_counts, mesh)


@lru_cache(maxsize=16384)
def shared_axes(rule: Rule, shardings: tuple[TensorSharding | None, ...], mesh: Mesh) -> tuple[Axes, ...] | None:
    """The axes of every factor if the tensors are compatible as they are and all axes fit; else None.

    Many ops share a rule and shardings, and the pass looks at them before and after it inserts reshards.

    >>> from pyshardy.core.notation import parse_sharding
    >>> from pyshardy.rules.notation import parse_rule
    >>> mesh, rule = Mesh([("a", 2)]), parse_rule("<([i])->([i]) {i=8}>")
    >>> sharded = parse_sharding('<@m, [{"a"}]>')
    >>> shared_axes(rule, (sharded, sharded), mesh), shared_axes(rule, (sharded, None), mesh)
    (((AxisRef('a'),),), None)
    """
    same = axes_if_same(rule, shardings)
    if same is not None:
        return _usable(rule, same)
    if not rule.has_compound_dims:
        return None
    states = project_tensors(rule, shardings, mesh)
    return None if any(map(has_overflow, states)) else agreed_axes(rule, states)


register_cache(shared_axes.cache_clear)


def agreed_axes(rule: Rule, states: Sequence[TensorState]) -> tuple[Axes, ...] | None:
    """The axes of every factor if the tensors are compatible as they are; else None.

    Overflow does not count. Factors that need replication must have no axes, and no two factors may share an axis.
    """
    found: dict[int, Axes] = {}
    for state in states:
        for factor, sharded in state.factors.items():
            if found.setdefault(factor, sharded.axes) != sharded.axes:
                return None
    return _usable(rule, found)


def _usable(rule: Rule, found: dict[int, Axes]) -> tuple[Axes, ...] | None:
    """The axes of every factor if an op can run on shards with them; else None."""
    if any(found.get(factor) for factor in rule.factors_of(FactorKind.NEED_REPLICATION)):
        return None
    used: Axes = ()
    for axes in filter(None, found.values()):
        if lists_overlap(axes, used):
            return None
        used += axes
    return tuple(found.get(factor, ()) for factor in range(len(rule.factor_sizes)))


def _preference(rule: Rule, state: TensorState, element_count: int, mesh: Mesh) -> tuple[bool, int, int]:
    permuted = any(
        state.factors[factor].axes for factor in rule.factors_of(FactorKind.PERMUTATION) if factor in state.factors
    )
    return not permuted, element_count, shard_count(state, mesh)


def _keep_one(rule: Rule, kept: TensorState, other: TensorState) -> tuple[Axes, ...]:
    """The axes of one tensor; factors that only the other tensor has keep the axes that do not conflict."""
    used = axes_of_tensor(kept)
    found: list[Axes] = []
    for factor in range(len(rule.factor_sizes)):
        if factor in kept.factors:
            found.append(kept.factors[factor].axes)
        elif factor in other.factors:
            found.append(truncate_overlaps(other.factors[factor].axes, used))
        else:
            found.append(())
    return tuple(found)
