"""Choosing the axes of all factors of an op at once, those with the most data first.

Source: docs/semantics/reshards-and-collectives.md#the-general-case
"""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.axis_lists import (
    append_or_merge,
    axes_size,
    is_prefix,
    is_strict_prefix,
    list_sort_key,
    truncate_overlaps,
)
from pyshardy.core.mesh import Mesh
from pyshardy.propagation.projection import TensorState
from pyshardy.rules.rule import FactorKind, Rule

_RANK = {
    FactorKind.PASS_THROUGH: 3,
    FactorKind.REDUCTION: 2,
    FactorKind.PERMUTATION: 1,
    FactorKind.NEED_REPLICATION: 0,
}


class _Candidate:
    """A list of axes that a factor may get.

    Attributes:
        factor: The factor.
        axes: The axes; cut while others are chosen.
        weight: The number of elements that already have these axes.
        gain: How much further the axes would split the factor than it is split now.
    """

    __slots__ = ("factor", "axes", "weight", "gain")

    def __init__(self, factor: int, axes: Axes, weight: int, gain: int) -> None:
        self.factor = factor
        self.axes = axes
        self.weight = weight
        self.gain = gain


def choose_greedily(
    rule: Rule, states: Sequence[TensorState], element_counts: Sequence[int], mesh: Mesh
) -> tuple[Axes, ...]:
    """The axes of every factor: repeatedly the list that most elements already have, as far as it still fits.

    Ties go to the factor that is cheaper to shard, then to the larger gain, then to the later factor.

    >>> from pyshardy.core.notation import parse_sharding
    >>> from pyshardy.reshard.factors import project_tensors
    >>> from pyshardy.rules.notation import parse_rule
    >>> dot = parse_rule("<([i, k], [k, j])->([i, j]) {i=16, j=16, k=16} reduction={k}>")
    >>> mesh = Mesh([("a", 2)])
    >>> shardings = [parse_sharding('<@m, [{"a"}, {}]>'), parse_sharding('<@m, [{"a"}, {}]>'), None]
    >>> choose_greedily(dot, project_tensors(dot, shardings, mesh), [256, 256, 256], mesh)
    ((AxisRef('a'),), (), ())
    """
    assigned: list[Axes] = [()] * len(rule.factor_sizes)
    waiting = _dependencies(rule)
    candidates = _candidates(states, element_counts, mesh)
    while True:
        free = [candidate for candidate in candidates if not waiting[candidate.factor]]
        if not free:
            break
        best = max(free, key=lambda candidate: _key(rule, candidate))
        assigned[best.factor] = best.axes
        if axes_size(best.axes, mesh) == rule.factor_sizes[best.factor]:
            for factors in waiting:
                factors.discard(best.factor)
        candidates = [other for other in candidates if _survives(other, best, assigned, mesh)]
    _move_from_replicated(rule, assigned, mesh)
    return tuple(assigned)


def _key(rule: Rule, candidate: _Candidate) -> tuple[object, ...]:
    rank = _RANK[rule.kinds[candidate.factor]]
    return candidate.weight, rank, candidate.gain, candidate.factor, list_sort_key(candidate.axes)


def _dependencies(rule: Rule) -> list[set[int]]:
    """Per factor, the factors that must be filled before it: those just before it in a dimension."""
    waiting: list[set[int]] = [set() for _ in rule.factor_sizes]
    for tensor in rule.tensors:
        for dim in tensor:
            for major, minor in zip(dim, dim[1:]):
                waiting[minor].add(major)
    return waiting


def _candidates(states: Sequence[TensorState], element_counts: Sequence[int], mesh: Mesh) -> list[_Candidate]:
    """Every list that a factor has in some tensor, and every prefix of it."""
    distinct = {
        (factor, found.axes[:count]): None
        for state in states
        for factor, found in state.factors.items()
        for count in range(1, len(found.axes) + 1)
    }
    return [
        _Candidate(factor, axes, _weight(factor, axes, states, element_counts), axes_size(axes, mesh))
        for factor, axes in distinct
    ]


def _weight(factor: int, axes: Axes, states: Sequence[TensorState], element_counts: Sequence[int]) -> int:
    """The number of elements in tensors that have these axes, or more, on the factor."""
    total = 0
    for state, count in zip(states, element_counts):
        found = state.factors.get(factor)
        if found is not None and is_prefix(axes, found.axes):
            total += count
    return total


def _survives(candidate: _Candidate, best: _Candidate, assigned: Sequence[Axes], mesh: Mesh) -> bool:
    """Cut a candidate, in place, by the axes chosen so far; return whether it can still be chosen."""
    if candidate.factor == best.factor:
        if not is_strict_prefix(best.axes, candidate.axes):
            return False
        candidate.gain = axes_size(candidate.axes, mesh) // axes_size(best.axes, mesh)
        return True
    cut = truncate_overlaps(candidate.axes, best.axes)
    if cut == candidate.axes:
        candidate.gain = axes_size(candidate.axes, mesh)
        return True
    have = assigned[candidate.factor]
    if cut == have:
        return False
    candidate.axes, candidate.gain = cut, axes_size(cut, mesh) // axes_size(have, mesh)
    return True


def _move_from_replicated(rule: Rule, assigned: list[Axes], mesh: Mesh) -> None:
    """Move axes from factors that need replication to batching factors with room."""
    batching = rule.batching_factors
    for factor in rule.factors_of(FactorKind.NEED_REPLICATION):
        axes, assigned[factor] = assigned[factor], ()
        if not axes or not rule.in_all_tensors(factor):
            continue
        for other in batching:
            assigned[other], axes = _fill(assigned[other], axes, rule.factor_sizes[other], mesh)


def _fill(own: Axes, offered: Axes, size: int, mesh: Mesh) -> tuple[Axes, Axes]:
    """Append to a factor's axes those offered axes that still divide it; return them and the axes left over."""
    taken = axes_size(own, mesh)
    if size == 0 or size % taken:
        return own, offered
    room, count = size // taken, 0
    filled: list[AxisRef] = list(own)
    for axis in offered:
        length = axis.length(mesh)
        if room % length:
            break
        append_or_merge(filled, axis, mesh)
        room //= length
        count += 1
    return tuple(filled), offered[count:]
