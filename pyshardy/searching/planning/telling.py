"""The plan of a search, with the estimates beside it, the reasons, and the notes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from pyshardy.core.text import format_bytes
from pyshardy.errors import UsageError
from pyshardy.report.nearest import NearestExpert
from pyshardy.report.plan import THE_PLAN, PlanRow, PlanSpec, PlanSummary
from pyshardy.report.reasons import PlanReason
from pyshardy.results.plan import Plan
from pyshardy.searching.autopartition.advice import advice
from pyshardy.searching.autopartition.objective import TIGHT
from pyshardy.searching.autopartition.registry import Answer
from pyshardy.searching.autopartition.space import Assignment
from pyshardy.searching.planning.compiled import Rival
from pyshardy.searching.planning.given import spelled_out
from pyshardy.searching.planning.meshes import placement
from pyshardy.searching.planning.nearest import expert_answers, nearest_expert
from pyshardy.searching.planning.ports import plan_specs
from pyshardy.searching.planning.proof import none_is_better
from pyshardy.searching.planning.reasons import reasons_of
from pyshardy.searching.planning.settling import best_row
from pyshardy.searching.planning.state import WITHOUT_CONSTRAINTS, SearchState
from pyshardy.searching.program.search_program import DOING

_FOUND = "the best plan that was found"
_LITTLE = 0.1
"""A plan that leaves memory free is mentioned if it takes at most this share longer."""


def plan_of(state: SearchState) -> Plan:
    """The plan of a search: the best of what was partitioned, or the program as it was given.

    Raises:
        UsageError: The program cannot be partitioned.
    """
    found = state.estimates.best()
    if found is None:
        best = state.checker.best or state.explorer.best
        assignment = state.space.empty if best is None else best.assignment
        row = state.whole(assignment)
        if row is None:
            raise UsageError(DOING, got="a program that cannot be partitioned", needed="one that `partition` accepts")
        found = row, assignment
    chosen, assignment = found
    if state.confirmed is not None:
        rival = state.confirmed.plan
        _take_confirmed(state, rival)
        chosen, assignment = rival.row, assignment if rival.assignment is None else rival.assignment
    if state.is_given and state.given_row is not None:
        return _given_plan(state, state.given_row, best_row(state) or chosen)
    if state.constrained is not None:
        state.unconstrained = found[0]
        chosen, assignment = state.constrained[0], state.constrained[1].answer.assignment
    if not chosen.fits:
        state.notes += advice(state.space, assignment, chosen.bytes, state.options.limit)
    elif chosen.bytes > TIGHT * state.options.limit:
        state.notes += _roomier(state, chosen)
    specs = (*state.pins, *plan_specs(state.space, assignment, state.inputs, state.outputs))
    constraints = {} if state.constrained is None else state.constrained[1].answer.constraints
    plan = Answer(assignment, constraints)
    reasons = () if state.is_interrupted else reasons_of(state, plan)
    nearest = None if state.is_interrupted else nearest_expert(state, plan)
    return Plan(_summary(state, chosen, specs, reasons, nearest), state.module, state.options.cost)


def _take_confirmed(state: SearchState, rival: Rival) -> None:
    """Make the plan that the compiler makes best the plan, with its constraints or without."""
    state.is_given = rival.assignment is None
    found = rival.constrained
    if found is None:
        state.constrained = None
    elif state.constrained is None or found.answer != state.constrained[1].answer:
        state.constrained = rival.row, found


def _roomier(state: SearchState, chosen: PlanRow) -> Iterator[str]:
    """A remark on a plan that takes little longer and leaves memory free, beside one that leaves next to none."""
    limit = state.options.limit
    rows = [row for row in state.estimates.front([chosen]) if row.bytes <= TIGHT * limit]
    other = min(rows, key=state.objective.rank, default=None)
    if other is not None and other.seconds <= chosen.seconds * (1 + _LITTLE):
        longer = other.seconds / chosen.seconds - 1
        free, whole, needed, wanted = (
            format_bytes(round(size)) for size in (limit - chosen.bytes, limit, other.bytes, TIGHT * limit)
        )
        yield (
            f"the plan leaves {free} of {whole} free, which is less than estimates may be wrong: one of {needed} takes "
            f"about {longer:.1%} longer; --memory {wanted.replace(' ', '')} looks for such a plan"
        )


def _given_plan(state: SearchState, row: PlanRow, found: PlanRow) -> Plan:
    """The program as it was given, as the plan; beside it the best plan that was found."""
    module, specs = spelled_out(state.given, None if state.confirmed else state.options, row)
    state.constrained, state.unconstrained = None, None
    state.given_row = replace(found, name=_FOUND)
    if state.confirmed is None:
        state.notes.append("no plan that was found is better than the program as it was given: it is the plan")
    if module is state.given:
        state.notes.append("inputs that have no sharding of their own are left to propagation")
    if not row.fits:
        state.notes += advice(state.space, state.as_given or state.space.empty, row.bytes, state.options.limit)
    return Plan(_summary(state, row, tuple(specs), (), None), module, state.options.cost)


def _summary(
    state: SearchState,
    chosen: PlanRow,
    specs: tuple[PlanSpec, ...],
    reasons: tuple[PlanReason, ...],
    nearest: NearestExpert | None,
) -> PlanSummary:
    options, explorer = state.options, state.explorer
    ended = "interruption" if state.is_interrupted else state.checker.ended_by or "nothing better"
    return PlanSummary(
        hardware=options.hardware.name,
        mesh=tuple(state.mesh.axes),
        collectives=options.collectives.value,
        limit=options.limit,
        specs=specs,
        chosen=replace(chosen, name=THE_PLAN),
        rows=tuple(_no_better(state, chosen, _rows(state))),
        front=tuple(
            _no_better(state, chosen, state.estimates.front([chosen, *(one.row for one in expert_answers(state))]))
        ),
        reasons=reasons,
        candidates=len({**explorer.found, **state.checker.found}) + len(state.task.between.found) + state.tries,
        exact=len(state.checker.found) + state.tries,
        seconds=round(time.monotonic() - state.started, 2),
        seed=options.seed,
        ended_by=ended,
        notes=tuple(filter(None, (*state.notes, placement(state.topology)))),
        constraints=state.plan_constraints(),
        bound=0.0 if state.prices is None else state.prices.least_seconds(),
        all_tried=len(state.all) if none_is_better(state.estimates, state.all, chosen) else 0,
        compiler="" if state.confirmed is None else state.confirmed.compiler,
        compiled=() if state.confirmed is None else state.confirmed.rows,
        nearest=() if nearest is None else (nearest,),
        goal=options.objective.goal.value,
    )


def _no_better(state: SearchState, chosen: PlanRow, rows: Iterable[PlanRow]) -> Iterator[PlanRow]:
    """Rows without those that look better than the plan by an estimate that nobody made more exact.

    Where a compiler has chosen the plan, all rows are shown: by estimates another one may be better.
    """
    return (row for row in rows if state.confirmed is not None or not state.objective.is_better(row, chosen))


def _rows(state: SearchState) -> Iterable[PlanRow]:
    if state.given_row is not None:
        yield state.given_row
    if state.unconstrained is not None:
        yield replace(state.unconstrained, name=WITHOUT_CONSTRAINTS)
    named = [*state.explorer.tactics.items(), *((name, one) for one, name in state.names.items())]
    found = [row for row in (state.estimates.row_of(name, tactic) for name, tactic in named) if row is not None]
    found += [*state.named, *_best_with_constraints(state)]
    yield from sorted(found, key=lambda row: (not row.is_exact, *state.objective.rank(row), row.name))


def _best_with_constraints(state: SearchState) -> Iterable[PlanRow]:
    """Of the plans of experts with constraints, the best one for every way to shard inputs, if constraints gain."""
    found: dict[Assignment, PlanRow] = {}
    for answer, row in expert_answers(state):
        best = found.get(answer.assignment)
        if best is None or state.objective.rank(row) < state.objective.rank(best):
            found[answer.assignment] = row
    names = set(state.explorer.tactics)
    return [row for row in found.values() if row.name not in names]
