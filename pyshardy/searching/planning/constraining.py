"""The constraints of a plan. The search looks for them after the shardings of inputs, with the exact estimate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import zip_longest
from typing import NamedTuple

from pyshardy.core.axes import Dims
from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.step_cost import StepCost
from pyshardy.errors import ShardyError
from pyshardy.ir.module import Module
from pyshardy.ir.named_values import NamedValue, with_shardings
from pyshardy.ir.nodes import Op
from pyshardy.ir.source_values import constrained, first_shardings
from pyshardy.report.constraints import PlanConstraint
from pyshardy.report.plan import PlanRow
from pyshardy.searching.autopartition.constraints import ConstrainableValue, Constrained, ConstraintSearch
from pyshardy.searching.autopartition.explore import Explorer, Limits, PriceFunction, RoughEstimates
from pyshardy.searching.autopartition.intents import expert_constraints, expert_dims
from pyshardy.searching.autopartition.objective import LEAST_CONSTRAINT_GAIN
from pyshardy.searching.autopartition.registry import Answer
from pyshardy.searching.autopartition.space import Assignment, Space
from pyshardy.searching.autopartition.values import ConstrainableValues
from pyshardy.searching.planning.candidates import LayeredCandidates, ShardingsByPosition

_MOST_VALUES = 24
"""The number of values that the built-in search may constrain, the largest ones."""
_MOST_STARTS = 2
"""The number of plans of experts from which constraints are searched."""
_SHARES = 4
"""The most exact estimates, as a multiple of the limit of one step."""
NOTHING = 0.0005
"""The share of time or memory that counts as none."""
_ROUGH = 3
"""The number of rough estimates of neighbours for each exact one."""


def with_constraints(module: Module, values: Sequence[NamedValue], chosen: Constrained, mesh: str) -> Module:
    """A module with constraints.

    Args:
        module: The program.
        values: The values that can be constrained.
        chosen: The axes of values, by position.
        mesh: The name of the mesh.
    """
    return constrained(module, with_shardings(values, chosen, mesh)) if chosen else module


def constrainable_in(
    propagated: Op, values: Sequence[NamedValue], with_parts: bool = False
) -> list[ConstrainableValue]:
    """The largest values with the axes that propagation gives them, without those that have parts of axes.

    Args:
        propagated: The program as nodes.
        values: Its values.
        with_parts: Whether to name values that have parts of axes too, which no constraint can have.
    """
    shardings = first_shardings(propagated)
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
        cost: The exact estimate.
    """

    answer: Answer
    cost: StepCost


class ExpertPlan(NamedTuple):
    """A plan of experts: shardings of inputs, and constraints.

    Attributes:
        name: The constraints in words.
        found: The shardings and the estimate.
        row: The estimate of the partitioned program; None if it was not partitioned.
    """

    name: str
    found: ConstrainedAssignment
    row: PlanRow | None = None


@dataclass
class Constraining:
    """A search for the constraints of one program.

    Attributes:
        module: The program.
        mesh: The name of its mesh.
        values: Its intermediate values.
        space: The decisions on inputs.
        between: Gives rough estimates with constraints.
        plain: Gives the exact estimate without constraints.
        layered: Makes the estimator with constraints; None for a program that it does not support.
        borders: Gives the shardings of inputs and outputs of an assignment, by position.
        annotated: Gives the program with these shardings.
        limits: When it ends.
        tries: The number of exact estimates so far.
        experts: The plans of experts with constraints that were priced.
    """

    module: Module
    mesh: str
    values: Sequence[NamedValue]
    space: Space
    between: ConstrainableValues
    plain: PriceFunction
    layered: Callable[[Constrained], LayeredCandidates | None]
    borders: Callable[[Assignment], tuple[ShardingsByPosition, ShardingsByPosition]]
    annotated: Callable[[Assignment], Module]
    limits: Limits
    tries: int = 0
    experts: list[ExpertPlan] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._known: dict[object, StepCost | None] = {}
        self._latest: tuple[object, LayeredCandidates | None] = (None, None)
        self._sites: dict[Assignment, list[ConstrainableValue]] = {}

    def run(self, starts: Sequence[Answer], experts: Iterable[Assignment]) -> ConstrainedAssignment | None:
        """The best shardings of inputs with constraints; None if no constraint gains.

        First it prices the constraints that experts write beside shardings of inputs. From the best of these, and from
        the first start, it searches constraints, then shardings of inputs, in turns while this gains.

        Args:
            starts: Shardings of inputs with the constraints that are there at first; the first is the best plan so far.
            experts: Shardings of inputs to which the constraints of experts are added.
        """
        if not self.values:
            return None
        pool = [ConstrainedAssignment(start, cost) for start in starts if (cost := self._priced(start)) is not None]
        ways = [self._with_experts(assignment) for assignment in dict.fromkeys([starts[0].assignment, *experts])]
        for turn in zip_longest(*ways):  # each gets its first set of constraints before any gets its second one
            pool += [one for one in turn if one is not None]
        rest: dict[Assignment, ConstrainedAssignment] = {}
        for one in sorted(pool[1:], key=lambda one: self._score(one.cost)):
            rest.setdefault(one.answer.assignment, one)
        chosen = [*pool[:1], *list(rest.values())[:_MOST_STARTS]]
        found = [self._constrained(one, len(chosen) - place) for place, one in enumerate(chosen)]
        best = min(found, key=lambda result: self._score(result.cost), default=None)
        return None if best is None or not best.answer.constraints else self._settled(best)

    def _score(self, cost: StepCost) -> tuple[float, float]:
        return self.space.problem.objective.score(cost)

    def _priced(self, answer: Answer) -> StepCost | None:
        """The exact estimate, counted as a candidate if it was not made before."""
        before = len(self._known)
        cost = self.price(answer.assignment, answer.constraints)
        self.tries += len(self._known) - before
        return cost

    @cached_property
    def _classes(self) -> dict[int, tuple[int, ...]]:
        """The classes of the dimensions of values, by their number."""
        places = self.space.problem.places()
        numbers = {number: places.get((one.value.span, one.value.shape)) for number, one in enumerate(self.values)}
        return {number: self.space.classes_of(value) for number, value in numbers.items() if value is not None}

    def sites(self, assignment: Assignment) -> list[ConstrainableValue]:
        """The values with the axes that propagation gives them."""
        if assignment not in self._sites:
            root = self._propagated(assignment)
            self._sites[assignment] = [] if root is None else constrainable_in(root, self.values)
        return self._sites[assignment]

    @cached_property
    def _unconstrained(self) -> LayeredCandidates | None:
        return self.layered({})

    def _propagated(self, assignment: Assignment) -> Op | None:
        """The short program with the shardings that those of inputs lead to; None if they do not fit."""
        prices = self._unconstrained
        try:
            return None if prices is None else prices.propagated(*self.borders(assignment)).root
        except ShardyError:
            return None

    def _with_experts(self, assignment: Assignment) -> Iterator[ConstrainedAssignment]:
        """Shardings of inputs, with the constraints of experts and without any, while the limits allow."""
        if self.is_over():
            return
        for name, chosen in expert_constraints(self.space, assignment, self.sites(assignment), self._classes):
            answer = Answer(assignment, chosen)
            cost = None if self.is_over() else self._priced(answer)
            if cost is not None:
                found = ConstrainedAssignment(answer, cost)
                self.experts.append(ExpertPlan(name, found))
                yield found
        plain = None if self.is_over() else self.price(assignment, {})
        if plain is not None:
            yield ConstrainedAssignment(Answer(assignment, {}), plain)

    def _constrained(self, start: ConstrainedAssignment, starts: int = 1) -> ConstrainedAssignment:
        """The best constraints for shardings of inputs that the limits allow to find.

        Args:
            start: The shardings, with the constraints to begin with.
            starts: The number of starts that are left, with this one; they share what is left of the candidates.
        """
        assignment, chosen = start.answer
        if self.is_over():
            return start
        left = self._most - self.tries
        most = min(left, max(self.limits.most * 3 // 4, left // (starts + 1)))
        sites = self.sites(assignment)
        ideas = expert_dims(self.space, assignment, sites, self._classes)
        search = ConstraintSearch(
            self.space.axes, lambda other: self.price(assignment, other), self._score, self.limits.until, most, ideas,
            partial(self.space.permits, None), best=dict(chosen), cost=start.cost,
        )  # fmt: skip
        search.run(sites)
        self.tries += search.tries
        return ConstrainedAssignment(Answer(assignment, search.best), search.cost or start.cost)

    def _settled(self, best: ConstrainedAssignment) -> ConstrainedAssignment:
        """Shardings of inputs for constraints, constraints for shardings of inputs, in turns while this gains."""
        while not self.is_over():
            before = best
            best = self._refined(best)
            if best.answer.assignment == before.answer.assignment:
                break
            best = self._constrained(best)
            if self._score(best.cost)[0] > self._score(before.cost)[0] * (1 - LEAST_CONSTRAINT_GAIN):
                break
        return best

    def _refined(self, result: ConstrainedAssignment) -> ConstrainedAssignment:
        """The best shardings of inputs near those of a plan, with the same constraints."""
        assignment, chosen = result.answer
        limits = self.limits._replace(most=max(1, min(self.limits.most, self._most - self.tries)))
        explorer = Explorer(self.space, limits, None, lambda other: self.price(other, chosen))
        explorer.evaluate(assignment)
        rough = RoughEstimates(lambda other: self.between.price(self.space, other, chosen), _ROUGH * limits.most)
        explorer.climb(rough)
        self.tries += len(explorer.found)
        best = explorer.best
        return result if best is None else ConstrainedAssignment(Answer(best.assignment, chosen), best.cost)

    @property
    def _most(self) -> int:
        """The most exact estimates of all steps together."""
        return _SHARES * self.limits.most

    def is_over(self) -> bool:
        """Whether time or candidates have run out."""
        return self.tries >= self._most or time.monotonic() > self.limits.until

    def price(self, assignment: Assignment, chosen: Constrained) -> StepCost | None:
        """The exact estimate; None if it cannot be propagated, or the user does not permit a constraint."""
        if not all(self.space.permits(None, dims) for dims in chosen.values()):
            return None
        key = assignment, tuple(sorted(chosen.items()))
        if key not in self._known:
            self._known[key] = self._price(assignment, chosen) if chosen else self.plain(assignment)
        return self._known[key]

    def is_priced(self, answer: Answer) -> bool:
        """Whether the exact estimate of a plan is known."""
        return (answer.assignment, tuple(sorted(answer.constraints.items()))) in self._known

    def keep(self, answer: Answer, cost: StepCost) -> None:
        """Keep an exact estimate."""
        self._known.setdefault((answer.assignment, tuple(sorted(answer.constraints.items()))), cost)

    def estimator(self, chosen: Constrained) -> LayeredCandidates | None:
        """What gives the exact estimates with constraints; None for a program that it does not support."""
        key = tuple(sorted(chosen.items()))
        if self._latest[0] != key:
            self._latest = key, self.layered(chosen)
        return self._latest[1]

    def _price(self, assignment: Assignment, chosen: Constrained) -> StepCost | None:
        prices = self.estimator(chosen)
        try:
            return None if prices is None else prices.price(*self.borders(assignment))
        except ShardyError:
            return None

    def pruned(self, result: ConstrainedAssignment) -> ConstrainedAssignment:
        """The plan without the constraints that change nothing beside the others; small values come first."""
        assignment, chosen = result.answer
        for place in sorted(chosen, key=lambda number: (self.values[number].bytes, -number)):
            left = {other: dims for other, dims in chosen.items() if other != place}
            cost = self.price(assignment, left)
            if cost is None or cost.seconds > result.cost.seconds * (1 + NOTHING):
                continue
            if cost.bytes <= result.cost.bytes * (1 + NOTHING):
                chosen, result = left, ConstrainedAssignment(Answer(assignment, left), cost)
        return result

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
        seconds = 0.0 if without is None else without.seconds - result.cost.seconds
        bytes = 0.0 if without is None else without.bytes - result.cost.bytes
        return PlanConstraint(
            name, value.function, *value.span, value.shape, value.element, chosen[place], value.count, seconds, bytes
        )
