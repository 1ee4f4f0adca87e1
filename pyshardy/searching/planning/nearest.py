"""The plan of experts that is nearest to a plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from pyshardy.core.axes import Dims
from pyshardy.core.spec import format_spec
from pyshardy.report.nearest import NearestExpert
from pyshardy.report.plan import PlanRow
from pyshardy.report.rules import without_end
from pyshardy.searching.autopartition.constraints import Constrained
from pyshardy.searching.autopartition.registry import Answer
from pyshardy.searching.autopartition.space import Space
from pyshardy.searching.planning.state import SearchState
from pyshardy.source.values import value_text


class NamedAnswer(NamedTuple):
    """A plan of experts: shardings of inputs, constraints, and the estimate with a name."""

    answer: Answer
    row: PlanRow


def nearest_expert(state: SearchState, chosen: Answer) -> NearestExpert | None:
    """The plan of experts that differs least from a plan: by bytes of inputs, then by constraints, then by time.

    Args:
        state: The state of the search.
        chosen: The plan.

    Returns:
        None if no plan of experts has an estimate.
    """
    known = [one for one in expert_answers(state) if one.row.is_exact or not state.estimates.is_like_whole]
    rank = state.objective.rank
    best = min(known, key=lambda one: (*_distance(state.space, one.answer, chosen), rank(one.row)), default=None)
    if best is None:
        return None
    row = best.row
    changes = (*_changed_inputs(state.space, best.answer, chosen), *_changed_values(state, best.answer, chosen))
    return NearestExpert(row.name, row.seconds, row.bytes, row.fits, tuple(changes))


def expert_answers(state: SearchState) -> Iterator[NamedAnswer]:
    """The plans of experts with exact estimates, without constraints and with them."""
    first = state.explorer.symmetry.first
    names: dict[object, str] = {}
    for name, tactic in state.explorer.tactics.items():
        assignment = first(tactic)
        names.setdefault(assignment, name)
        if state.checker.found.get(assignment) is not None:
            row = state.estimates.row_of(name, assignment)
            if row is not None:
                yield NamedAnswer(Answer(assignment, {}), row)
    for plan in state.experts:
        answer, cost = plan.found
        if first(answer.assignment) in names:
            name = f"{names[first(answer.assignment)]}; {plan.name}"
            row = state.estimates.exact_row(name, cost) if plan.row is None else replace(plan.row, name=name)
            yield NamedAnswer(answer, row)


def _distance(space: Space, one: Answer, other: Answer) -> tuple[int, int]:
    changed = [
        group.bytes * len(group.members)
        for group, here, there in zip(space.groups, one.assignment, other.assignment)
        if here != there
    ]
    places = {*one.constraints, *other.constraints}
    return sum(changed), sum(one.constraints.get(place) != other.constraints.get(place) for place in places)


def _changed_inputs(space: Space, expert: Answer, plan: Answer) -> Iterator[str]:
    found: dict[tuple[Dims, Dims], list[str]] = {}
    for group, there, here in zip(space.groups, expert.assignment, plan.assignment):
        if there != here:
            found.setdefault((without_end(there), without_end(here)), []).append(group.name)
    for (there, here), names in found.items():
        yield f"{_names(names)}: {format_spec(here)} instead of {format_spec(there)}"


def _names(names: list[str]) -> str:
    """One name for several inputs.

    >>> _names(["params['w']", "mean['w']"]), _names(["a", "b", "c", "d"])
    ("params['w'], mean['w']", 'a, b and 2 others')
    """
    if len(names) <= 3:
        return ", ".join(names)
    return f"{', '.join(names[:2])} and {len(names) - 2} others"


def _changed_values(state: SearchState, expert: Answer, plan: Answer) -> Iterator[str]:
    here, there = plan.constraints, expert.constraints
    found: dict[str, int] = {}
    for place in sorted({*here, *there}):
        if here.get(place) != there.get(place):
            value, name = state.values[place]
            one, other = _constraint(here, place), _constraint(there, place)
            text = f"{value_text(name, value.function)}: {one} instead of {other}"
            found[text] = found.get(text, 0) + 1
    for text, count in found.items():
        yield text if count == 1 else f"{text}, {count} times"


def _constraint(constrained: Constrained, place: int) -> str:
    return format_spec(constrained[place]) if place in constrained else "no constraint"
