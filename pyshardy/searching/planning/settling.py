"""Sees to it that no row beside the plan is better than the plan: what looks better is priced until that is decided."""

from __future__ import annotations

import time

from pyshardy.report.plan import PlanRow
from pyshardy.searching.autopartition.moves import batch_classes, put, weights, without_axes_of_small
from pyshardy.searching.autopartition.registry import Answer
from pyshardy.searching.autopartition.space import Assignment
from pyshardy.searching.planning.constraining import NOTHING, ConstrainedAssignment
from pyshardy.searching.planning.estimates import step_cost_of
from pyshardy.searching.planning.given import given_row
from pyshardy.searching.planning.reasons import better_sharding
from pyshardy.searching.planning.state import SearchState

_MOST_EXACT = 12
"""The number of tactics that get an exact estimate because they look better than the plan by a rough one."""
_MOST_ROUNDS = 2
"""How often other shardings of the rules are priced, if that finds better ones."""
_LATER = 1.05
"""The share of the budget after which the plan is not made simpler."""
_SIMPLER = 5e-4
"""By this share a plan may be worse if its small parameters stay whole, and its batch is split."""
_MOST_WHOLE = 8
"""The number of candidates that are partitioned because they look better than the plan."""


def best_row(state: SearchState) -> PlanRow | None:
    """The best plan that was partitioned, with constraints or without; None if none was."""
    found = [] if state.constrained is None else [state.constrained[0]]
    best = state.estimates.best()
    found += [] if best is None else [best[0]]
    return min(found, key=state.objective.rank, default=None)


def settle(state: SearchState) -> None:
    """Price what looks better than the plan by a less exact estimate, and the program as it was given.

    Constraints that are not better than the best plan without any are dropped. `is_given` of the state says whether the
    given program is better than every plan.
    """
    if best_row(state) is None:
        return
    _look_at_tactics(state)
    _partition(state)
    _partition_experts(state)
    plain, constrained = state.estimates.best(), None if state.constrained is None else state.constrained[0]
    if constrained is not None and plain is not None and not state.objective.is_better(constrained, plain[0]):
        state.constrained = None
    _improve(state)
    _prune(state)
    _make_usual(state)
    best = best_row(state)
    assert best is not None
    state.given_row = given_row(state, best)
    given = state.given_row
    is_better = given is not None and given.is_exact and state.objective.is_better(given, best)
    state.is_given = is_better and state.may_be_given


def _look_at_tactics(state: SearchState) -> None:
    """Exact estimates of the tactics that look better than the plan by rough ones."""
    best, first = best_row(state), state.explorer.symmetry.first
    assert best is not None
    waiting = []
    for name, tactic in state.explorer.tactics.items():
        row = None if first(tactic) in state.checker.found else state.estimates.row_of(name, tactic)
        if row is not None and state.objective.is_better(row, best):
            waiting.append((state.objective.rank(row), first(tactic)))
    for _, assignment in sorted(waiting)[:_MOST_EXACT]:
        if time.monotonic() > state.started + state.options.budget_s:
            break
        state.plain(assignment)


def _partition(state: SearchState) -> None:
    """Partition the candidates that look better than the plan by exact estimates, the best first."""
    tries = 0
    for found in state.checker.ranked():
        best = best_row(state)
        row = state.estimates.row_of("", found.assignment)
        if found.assignment in state.estimates.wholes or best is None or row is None:
            continue
        if state.objective.is_better(row, best) and tries < _MOST_WHOLE:
            state.whole(found.assignment)
            tries += 1


def _partition_experts(state: SearchState) -> None:
    """Partition the plans of experts with constraints that look better than the plan by exact estimates."""
    tries = 0
    rows = [state.estimates.exact_row("", plan.found.cost) for plan in state.experts]
    for at in sorted(range(len(rows)), key=lambda at: state.objective.rank(rows[at])):
        best, plan = best_row(state), state.experts[at]
        if best is None or tries >= _MOST_WHOLE or state.estimates.is_like_whole:
            return
        if state.objective.is_better(rows[at], best):
            state.experts[at] = plan._replace(row=_priced(state, plan.found))
            tries += 1


def _improve(state: SearchState) -> None:
    """Price the best other shardings of every rule, and take what is better, until nothing is."""
    for _ in range(_MOST_ROUNDS):
        plan = best_answer(state)
        if plan is None or time.monotonic() + state.whole_seconds > state.explained_by:  # to partition what is better
            return
        better = better_sharding(state, plan)
        if better is None or not _taken(state, Answer(better, plan.constraints)):
            return


def _prune(state: SearchState) -> None:
    """Leave out the constraints of the plan that change nothing, because others already say the same."""
    constraining = state.constraining
    if state.constrained is None or constraining is None:
        return
    row, found = state.constrained
    pruned = constraining.pruned(found)
    if pruned.answer.constraints == found.answer.constraints:
        return
    new = state.options.row("", constraining.module_of(pruned.answer))
    if new is not None and not state.objective.is_better(row, new, NOTHING):
        state.constrained = new, pruned


def _make_usual(state: SearchState) -> None:
    """Leave small parameters whole, such as norms and biases, and split the batch, if that costs next to nothing."""
    plan, before = best_answer(state), best_row(state)
    until = state.started + _LATER * state.options.budget_s
    if plan is None or before is None or time.monotonic() + state.whole_seconds > until:
        return
    answer = usual(state, plan)
    if answer == plan:
        return
    constraining = state.constraining
    if not plan.constraints or constraining is None:
        row = state.whole(answer.assignment)
        if row is not None and not state.objective.is_better(before, row, _SIMPLER):
            state.estimates.preferred = answer.assignment
        return
    row = state.options.row("", constraining.module_of(answer))
    if row is not None and not state.objective.is_better(before, row, _SIMPLER):
        found = ConstrainedAssignment(answer, step_cost_of(row))
        state.constrained = row, found


def usual(state: SearchState, plan: Answer) -> Answer:
    """A plan with small parameters whole and the batch split, if that costs next to nothing by exact estimates."""
    assignment = without_axes_of_small(state.space, _with_batch(state, plan))
    if not plan.constraints:
        assignment = state.explorer.symmetry.first(assignment)
    if assignment == plan.assignment:
        return plan
    answer = Answer(assignment, plan.constraints)
    own, other = state.price(plan), state.price(answer)
    if own is None or other is None:
        return plan
    score = state.checker.score
    return answer if score(other)[0] <= score(own)[0] * (1 + _SIMPLER) else plan


def _with_batch(state: SearchState, plan: Answer) -> Assignment:
    """The shardings of a plan, with the batch of inputs split along an axis if it is not and that costs nothing."""
    space, assignment = state.space, plan.assignment
    of_weights = set(weights(space))
    places = [place for number in batch_classes(space) for place in space.classes[number].places]
    places = [(group, dim) for group, dim in places if group not in of_weights and space.groups[group].is_free]
    own = state.price(plan)
    if own is None or any(assignment[group][dim] for group, dim in places):
        return assignment
    found = dict.fromkeys(put(space, assignment, axis, places) for axis, _ in space.axes)
    priced = {one: state.price(Answer(one, plan.constraints)) for one in found if one != assignment}
    score = state.checker.score
    costs = {one: score(cost) for one, cost in priced.items() if cost is not None}
    best = min(costs, key=lambda one: costs[one], default=None)
    return assignment if best is None or costs[best][0] > score(own)[0] * (1 + _SIMPLER) else best


def best_answer(state: SearchState) -> Answer | None:
    """The best plan that was partitioned; None if none was."""
    if state.constrained is not None:
        return state.constrained[1].answer
    best = state.estimates.best()
    return None if best is None else Answer(best[1], {})


def _taken(state: SearchState, answer: Answer) -> bool:
    """Whether a plan is better than the best one when it is partitioned; then it is the best one."""
    before = best_row(state)
    assert before is not None
    if not answer.constraints:
        row = state.whole(state.explorer.symmetry.first(answer.assignment))
        return row is not None and state.objective.is_better(row, before)
    cost = state.price(answer)
    row = None if cost is None else _priced(state, ConstrainedAssignment(answer, cost))
    return row is not None and state.objective.gains(row, before)


def _priced(state: SearchState, found: ConstrainedAssignment) -> PlanRow | None:
    """The estimate of a partitioned plan with constraints. If it gains enough, it is the best plan."""
    before, constraining = best_row(state), state.constraining
    row = None if constraining is None else state.options.row("", constraining.module_of(found.answer))
    if row is not None and constraining is not None and before is not None and state.objective.gains(row, before):
        state.constrained = row, found
    return row
