"""Why a plan has its rules: for every rule the cost of the best other sharding, and the collectives that it makes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pyshardy.core.axes import Dims
from pyshardy.core.spec import format_spec
from pyshardy.costing.step_cost import StepCost
from pyshardy.report.reasons import PlanReason, RuleCollective
from pyshardy.report.rules import REST, NamedSpec, rules_of, without_end
from pyshardy.searching.autopartition.moves import put, put_all, take
from pyshardy.searching.autopartition.registry import Answer
from pyshardy.searching.autopartition.space import Assignment, Space
from pyshardy.searching.planning.candidates import CollectiveCounts
from pyshardy.searching.planning.ports import plan_specs
from pyshardy.searching.planning.state import SearchState

_MOST_EXACT = 1
"""The number of other shardings of each rule that get exact estimates, those with the best rough ones."""
_MOST_ROUGH = 3
"""The number of other shardings of each rule that get rough estimates to find the best one."""
_MOST_RULES, _MOST_IMPROVED = 20, 6
"""The number of rules that get reasons, and the number of rules that the search tries to improve: those of most
bytes."""
_CLEAR, _LESS = 1e-3, 1e-2
"""By this share of the time another sharding must be better to be the plan; or by that share of the memory, at the same
time."""
_UNIFORM = 1e-2
"""The same share of the time for shardings of optimizer state alone, which then are not those of its parameters."""
_MOST_DIMS = 3
_NOTHING = "other inputs, which stay whole"


class RuleGroups(NamedTuple):
    """A rule of a plan, and the groups of inputs that it decides."""

    pattern: str
    axes: Dims
    groups: list[int]


def reasons_of(state: SearchState, plan: Answer) -> tuple[PlanReason, ...]:
    """The reasons of a plan: one for each rule, the largest loss first.

    Args:
        state: The state of the search.
        plan: The shardings of inputs, and the constraints.
    """
    asker = _Asker(state, plan)
    rules = rule_groups(state, plan.assignment)[:_MOST_RULES]
    changes = [asker.changes(rule) for rule in rules]  # these give exact estimates, too
    found = [asker.reason(rule, change) for rule, change in zip(rules, changes)]
    return tuple(sorted(found, key=lambda row: -row.seconds))


def better_sharding(state: SearchState, plan: Answer) -> Assignment | None:
    """The best of the other shardings of single rules, by exact estimates; None if none is better than the plan.

    Args:
        state: The state of the search.
        plan: The shardings of inputs, and the constraints.
    """
    asker = _Asker(state, plan)
    best, better = asker.own, None
    if best is None:
        return None
    for rule in rule_groups(state, plan.assignment)[:_MOST_IMPROVED]:
        is_state = all(state.space.groups[group].twin is not None for group in rule.groups)
        for assignment, found in asker.exact(asker.promising(rule)).items():
            if asker.is_better(found, best, _UNIFORM if is_state else _CLEAR):
                best, better = found, assignment
    return better


def rule_groups(state: SearchState, assignment: Assignment) -> list[RuleGroups]:
    """The rules of an assignment with the groups that they decide; those of most bytes first."""
    space, inputs = state.space, state.inputs
    specs = [spec for spec in plan_specs(space, assignment, inputs, state.outputs) if not spec.is_output]
    rules = rules_of(NamedSpec(one.name, one.axes, one.count, one.shape) for one in specs)
    found: dict[str, RuleGroups] = {}
    for number, group in enumerate(space.groups):
        name = inputs[group.members[0]].name
        rule = next((one for one in rules if one.fits(name)), None)
        if group.is_free and group.shape and rule is not None:
            found.setdefault(rule.pattern, RuleGroups(rule.pattern, rule.axes, [])).groups.append(number)
    return sorted(found.values(), key=lambda rule: -sum(_bytes(space, group) for group in rule.groups))


def _bytes(space: Space, group: int) -> int:
    return space.groups[group].bytes * len(space.groups[group].members)


def other_shardings(space: Space, assignment: Assignment, groups: Sequence[int]) -> list[Assignment]:
    """The assignments in which a rule's groups have another sharding: whole, or an axis elsewhere or not at all."""
    names = [name for name, _ in space.axes]
    whole = assignment
    for axis in names:
        whole = take(space, whole, axis, groups)
    found = [whole]
    dims = range(min(_MOST_DIMS, max(len(space.groups[group].shape) for group in groups)))
    for axis in names:
        found.append(take(space, assignment, axis, groups))
        for dim in dims:
            places = [(group, dim) for group in groups if dim < len(space.groups[group].shape)]
            found += [put(space, start, axis, places) for start in (assignment, whole)]
    found += [
        put_all(space, whole, [group for group in groups if dim < len(space.groups[group].shape)], dim) for dim in dims
    ]
    return [one for one in dict.fromkeys(found) if one != assignment]


class _Asker:
    """Prices other shardings beside a plan."""

    def __init__(self, state: SearchState, plan: Answer) -> None:
        self.state, self.plan = state, plan
        self.end = state.explained_by
        self.own = self.exact([plan.assignment]).get(plan.assignment)

    def is_better(self, one: StepCost, other: StepCost, clear: float = _CLEAR) -> bool:
        """Whether a plan is faster by a share of the time, or as fast with less memory."""
        (seconds, bytes), (own, most) = self.state.checker.score(one), self.state.checker.score(other)
        return seconds < own * (1 - clear) or (seconds <= own and bytes < most * (1 - _LESS))

    def _others(self, rule: RuleGroups) -> tuple[list[Assignment], list[Assignment]]:
        """The other shardings of a rule: those that have an exact estimate, and those that have none."""
        known: list[Assignment] = []
        new: list[Assignment] = []
        for one in other_shardings(self.state.space, self.plan.assignment, rule.groups):
            (known if self.state.is_priced(Answer(one, self.plan.constraints)) else new).append(one)
        return known, new

    def promising(self, rule: RuleGroups) -> list[Assignment]:
        """The other shardings of a rule that have an exact estimate, and of some others the best by rough ones."""
        known, new = self._others(rule)
        rough = self._rough(new[:_MOST_ROUGH])
        return known + sorted(rough, key=lambda one: self.state.explorer.score(rough[one]))[:_MOST_EXACT]

    def _rough(self, assignments: Iterable[Assignment]) -> dict[Assignment, StepCost]:
        found = {one: self.state.rough(Answer(one, self.plan.constraints)) for one in assignments}
        return {one: cost for one, cost in found.items() if cost is not None}

    def exact(self, assignments: Iterable[Assignment]) -> dict[Assignment, StepCost]:
        """Exact estimates with the constraints of the plan: those that are known or for which there is time."""
        found = {}
        for one in assignments:
            answer = Answer(one, self.plan.constraints)
            has_time = self.state.prices is not None and time.monotonic() < self.end
            cost = self.state.price(answer) if has_time or self.state.is_priced(answer) else None
            if cost is not None:
                found[one] = cost
        return found

    def reason(self, rule: RuleGroups, changes: tuple[RuleCollective, ...]) -> PlanReason:
        """The reason of one rule: by exact estimates, or by rough ones where there was no time for these."""
        known, new = self._others(rule)
        priced, own = self.exact(known), self.own
        is_exact = own is not None and bool(priced)
        if not is_exact:
            priced, own = self._rough(new[: 2 * _MOST_ROUGH]), self.state.rough(self.plan)
        decision = f"{format_spec(rule.axes)} for {_NOTHING if rule.pattern == REST else rule.pattern}"
        score = self.state.checker.score
        worse = [] if own is None else [one for one, cost in priced.items() if score(cost) >= score(own)]
        best = min(worse, key=lambda one: score(priced[one]), default=None)
        if best is None and priced and not is_exact and time.monotonic() < self.end:  # all others look better
            best = min(priced, key=lambda one: score(priced[one]))
            found = self.state.price(Answer(best, self.plan.constraints))
            if found is not None and self.own is not None:
                priced, own, is_exact = {best: found}, self.own, True
        if best is None or own is None:
            return PlanReason(decision, 0.0, 0.0, collectives=changes)
        instead, groups = priced[best], rule.groups
        specs = " or ".join(dict.fromkeys(format_spec(without_end(best[group])) for group in groups))
        seconds, bytes = instead.seconds - own.seconds, instead.bytes - own.bytes
        sending = instead.communication_seconds - own.communication_seconds
        return PlanReason(decision, seconds, bytes, specs, is_exact, changes, sending)

    def changes(self, rule: RuleGroups) -> tuple[RuleCollective, ...]:
        """The collectives that a rule makes and spares, beside the same arrays kept whole."""
        whole = self.plan.assignment
        for axis, _ in self.state.space.axes:
            whole = take(self.state.space, whole, axis, rule.groups)
        counts, others = (
            self.state.counts(Answer(one, self.plan.constraints), self.end) for one in (self.plan.assignment, whole)
        )
        return () if counts is None or others is None else tuple(_differences(counts, others))


def _differences(counts: CollectiveCounts, others: CollectiveCounts) -> Iterator[RuleCollective]:
    """The collectives of which there are more or less than in the other program, the most bytes first."""
    found = []
    for kind, axes in sorted({*counts, *others}):
        count, bytes = counts.get((kind, axes), (0, 0))
        less, fewer = others.get((kind, axes), (0, 0))
        if count != less or bytes != fewer:
            found.append(RuleCollective(kind, axes, count - less, bytes - fewer))
    yield from sorted(found, key=lambda one: (-abs(one.bytes), one.kind, one.axes))
