"""The constraints of a plan. The search looks for them after the shardings of inputs, with the careful estimate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyshardy.autopartition.constraints import ConstrainableValue, Constrained, ConstraintSearch
from pyshardy.autopartition.explore import Explorer, Limits, score
from pyshardy.autopartition.pricing import Quick
from pyshardy.autopartition.registry import Answer
from pyshardy.autopartition.space import Assignment, Dims, Space
from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import ShardyError
from pyshardy.ir.module import Module
from pyshardy.planning.candidates import LayeredCandidates, ShardingsByPosition
from pyshardy.propagation.options import PropagateOptions
from pyshardy.report.constraints import PlanConstraint
from pyshardy.results.sharded_program import shard
from pyshardy.transforms.named_values import NamedValue, with_shardings
from pyshardy.transforms.search_program import short_program
from pyshardy.transforms.source_values import constrained, first_shardings

_MOST_VALUES = 24
"""The number of values that the built-in search may constrain, the largest ones."""


def with_constraints(module: Module, values: Sequence[NamedValue], chosen: Constrained, mesh: str) -> Module:
    """A module with constraints.

    Args:
        module: The program.
        values: The values that can be constrained.
        chosen: The axes of values, by position.
        mesh: The name of the mesh.
    """
    return constrained(module, with_shardings(values, chosen, mesh)) if chosen else module


def constrainable_values(
    annotated: Module, values: Sequence[NamedValue], with_parts: bool = False
) -> list[ConstrainableValue]:
    """The largest values with the axes that propagation gives them.

    Args:
        annotated: The program with shardings on inputs and outputs.
        values: Its values.
        with_parts: Whether to name values that have parts of axes too, which no constraint can have.
    """
    with annotated.context:
        short, _ = short_program(annotated.root)
    try:
        shardings = first_shardings(shard(annotated.with_root(short.root), PropagateOptions())[1])
    except ShardyError:
        return []
    found = []
    largest = sorted(range(len(values)), key=lambda number: -values[number].bytes)[:_MOST_VALUES]
    for number in sorted(largest):
        one, value = values[number], values[number].value
        sharding = shardings.get((value.span, value.shape))
        axes = () if sharding is None else [axis for dim in sharding.dims for axis in dim.axes]
        if with_parts or all(axis.is_full for axis in axes):
            dims = _dims(sharding, len(value.shape))
            found.append(ConstrainableValue(number, value.shape, value.element, one.bytes, dims))
    return found


def _dims(sharding: TensorSharding | None, rank: int) -> Dims:
    """The axes of a sharding by name, without parts of axes."""
    if sharding is None:
        return ((),) * rank
    return tuple(tuple(axis.name for axis in dim.axes if axis.is_full) for dim in sharding.dims)


class ConstrainedAssignment(NamedTuple):
    """Shardings of inputs with constraints.

    Attributes:
        answer: The axes of inputs and of intermediate values.
        quick: The careful estimate.
    """

    answer: Answer
    quick: Quick


@dataclass
class Constraining:
    """A search for the constraints of one program.

    Attributes:
        module: The program.
        mesh: The name of its mesh.
        values: Its intermediate values.
        space: The decisions on inputs.
        layered: Makes the estimator of a module; None for a module that it does not support.
        borders: Gives the shardings of inputs and outputs of an assignment, by position.
        annotated: Gives the program with these shardings.
        limits: When it ends.
    """

    module: Module
    mesh: str
    values: Sequence[NamedValue]
    space: Space
    layered: Callable[[Module], LayeredCandidates | None]
    borders: Callable[[Assignment], tuple[ShardingsByPosition, ShardingsByPosition]]
    annotated: Callable[[Assignment], Module]
    limits: Limits
    tries: int = 0

    def __post_init__(self) -> None:
        self._known: dict[object, Quick | None] = {}
        self._latest: tuple[object, LayeredCandidates | None] = (None, None)

    def run(self, starts: Iterable[Answer], quick: Mapping[Assignment, Quick | None]) -> ConstrainedAssignment | None:
        """The best of some shardings of inputs with their constraints; None if no constraint gains.

        Args:
            starts: The shardings of inputs, with the constraints that are there at first.
            quick: Quick estimates, which order the neighbours of the best assignment.
        """
        found = [result for result in map(self._constrained, starts) if result is not None]
        best = min(found, key=lambda result: self._score(result.quick), default=None)
        return None if best is None else self._refined(best, quick)

    def _score(self, quick: Quick) -> tuple[float, float]:
        return score(quick, self.space.problem.limit)

    def _constrained(self, start: Answer) -> ConstrainedAssignment | None:
        assignment = start.assignment
        search = ConstraintSearch(
            self.space.axes, lambda chosen: self.price(assignment, chosen), self._score, self.limits.until,
            self.limits.most,
        )  # fmt: skip
        if self.is_over() or not self.values:
            return None
        if start.constraints:
            search.best, search.quick = dict(start.constraints), self.price(assignment, start.constraints)
        search.run(constrainable_values(self.annotated(assignment), self.values))
        self.tries += search.tries
        if not search.best or search.quick is None:
            return None
        return ConstrainedAssignment(Answer(assignment, search.best), search.quick)

    def _refined(
        self, result: ConstrainedAssignment, quick: Mapping[Assignment, Quick | None]
    ) -> ConstrainedAssignment:
        """The best neighbour of the shardings of the inputs, with the same constraints."""
        assignment, chosen = result.answer
        explorer = Explorer(self.space, self.limits, None, lambda other: self.price(other, chosen))
        explorer.evaluate(assignment)
        explorer.climb(quick)
        self.tries += len(explorer.found)
        best = explorer.best
        return result if best is None else ConstrainedAssignment(Answer(best.assignment, chosen), best.quick)

    def is_over(self) -> bool:
        """Whether there is no time left."""
        return time.monotonic() > self.limits.until

    def price(self, assignment: Assignment, chosen: Constrained) -> Quick | None:
        """The careful estimate; None if it cannot be propagated."""
        key = assignment, tuple(sorted(chosen.items()))
        if key not in self._known:
            self._known[key] = self._price(assignment, chosen)
        return self._known[key]

    def _price(self, assignment: Assignment, chosen: Constrained) -> Quick | None:
        key = tuple(sorted(chosen.items()))
        if self._latest[0] != key:
            self._latest = key, self.layered(with_constraints(self.module, self.values, chosen, self.mesh))
        prices = self._latest[1]
        try:
            found = None if prices is None else prices.price(*self.borders(assignment))
        except ShardyError:
            return None
        return None if found is None else Quick(found.seconds, found.bytes)

    def module_of(self, answer: Answer) -> Module:
        """The program with shardings of inputs, and constraints."""
        return with_constraints(self.annotated(answer.assignment), self.values, answer.constraints, self.mesh)

    def plan_constraints(self, result: ConstrainedAssignment) -> tuple[PlanConstraint, ...]:
        """The constraints of a plan, each with its gain."""
        return tuple(self._plan_constraint(result, place) for place in sorted(result.answer.constraints))

    def _plan_constraint(self, result: ConstrainedAssignment, place: int) -> PlanConstraint:
        value, name = self.values[place]
        assignment, chosen = result.answer
        without = self.price(assignment, {other: dims for other, dims in chosen.items() if other != place})
        seconds = 0.0 if without is None else without.seconds - result.quick.seconds
        bytes = 0.0 if without is None else without.bytes - result.quick.bytes
        return PlanConstraint(
            name, value.function, *value.span, value.shape, value.element, chosen[place], value.count, seconds, bytes
        )
