"""The constraints of a plan. The search looks for them after the shardings of inputs, with the careful estimate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyshardy.autopartition.constraints import Constrained, ConstraintSearch, Site
from pyshardy.autopartition.explore import Explorer, Limits, score
from pyshardy.autopartition.pricing import Quick
from pyshardy.autopartition.space import Assignment, Dims, Space
from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import ShardyError
from pyshardy.frontend.source_values import SourceValue, constrained, first_shardings, source_values
from pyshardy.ir.dtypes import known_bytes
from pyshardy.ir.module import Module
from pyshardy.propagation.options import PropagateOptions
from pyshardy.quick_cost.layered import Border, LayeredCandidates
from pyshardy.report.assignments import Assignment as Statement
from pyshardy.report.assignments import Span, assignments, read_lines
from pyshardy.report.constraints import PlanConstraint
from pyshardy.results.sharded_program import shard
from pyshardy.transforms.search_program import short_program

_MOST_VALUES = 24
"""So many of the largest values are looked at."""


class Named(NamedTuple):
    """A value that can be constrained, and the variable it is assigned to."""

    value: SourceValue
    name: str

    @property
    def bytes(self) -> int:
        """Of all that it stands for, as a whole."""
        return known_bytes(self.value.shape, self.value.element) * len(self.value.made)


def named_values(module: Module) -> list[Named]:
    """The largest values that statements assign or return; all values, for files that cannot be read.

    Args:
        module: The program.
    """
    known: dict[str, dict[Span, Statement] | None] = {}
    found = []
    for value in source_values(module):
        file = value.span.file
        if file not in known:
            lines = read_lines(file)
            known[file] = assignments(file, lines) if lines else None
        statements = known[file]
        if statements is None:
            found.append(Named(value, ""))
        elif value.span in statements:
            found.append(Named(value, statements[value.span].name))
    largest = sorted(found, key=lambda one: -one.bytes)[:_MOST_VALUES]
    return [one for one in found if one in largest]


def with_constraints(module: Module, values: Sequence[Named], chosen: Constrained, mesh: str) -> Module:
    """A module with constraints.

    Args:
        module: The program that the values are of.
        values: The values.
        chosen: The axes of values, by position.
        mesh: The name of the mesh.
    """
    pairs = [(values[place].value, sharding_of(dims, mesh)) for place, dims in sorted(chosen.items())]
    return constrained(module, pairs) if pairs else module


def sharding_of(dims: Dims, mesh: str) -> TensorSharding:
    """The closed sharding with these axes."""
    return TensorSharding(mesh, [list(axes) for axes in dims])


def sites(annotated: Module, values: Sequence[Named]) -> list[Site]:
    """The values with the axes that propagation gives them.

    Args:
        annotated: The program with shardings on inputs and outputs.
        values: Its values.
    """
    with annotated.context:
        short, _ = short_program(annotated.root)
    try:
        shardings = first_shardings(shard(annotated.with_root(short.root), PropagateOptions())[1])
    except ShardyError:
        return []
    found = []
    for number, one in enumerate(values):
        value = one.value
        sharding = shardings.get((value.span, value.shape))
        dims = _dims(sharding, len(value.shape))
        if dims is not None:
            found.append(Site(number, value.shape, value.element, one.bytes, dims))
    return found


def _dims(sharding: TensorSharding | None, rank: int) -> Dims | None:
    """The axes of a sharding by name; None if there are parts of axes."""
    if sharding is None:
        return ((),) * rank
    if not all(axis.is_full for dim in sharding.dims for axis in dim.axes):
        return None
    return tuple(tuple(axis.name for axis in dim.axes) for dim in sharding.dims)


class Result(NamedTuple):
    """Shardings of inputs with constraints.

    Attributes:
        assignment: The axes of inputs.
        chosen: The axes of values by their position.
        quick: The careful estimate.
    """

    assignment: Assignment
    chosen: dict[int, Dims]
    quick: Quick


@dataclass
class Constraining:
    """A search for the constraints of one program.

    Attributes:
        module: The program.
        mesh: The name of its mesh.
        space: The decisions on inputs.
        layered: Makes the estimator of a module; None for a module that it does not support.
        borders: Gives the shardings of inputs and outputs of an assignment, by position.
        annotated: Gives the program with these shardings.
        limits: When it ends.
    """

    module: Module
    mesh: str
    space: Space
    layered: Callable[[Module], LayeredCandidates | None]
    borders: Callable[[Assignment], tuple[Border, Border]]
    annotated: Callable[[Assignment], Module]
    limits: Limits
    tries: int = 0

    def __post_init__(self) -> None:
        self.values = named_values(self.module)
        self._known: dict[object, Quick | None] = {}
        self._latest: tuple[object, LayeredCandidates | None] = (None, None)

    def run(self, assignments: Iterable[Assignment], quick: Mapping[Assignment, Quick | None]) -> Result | None:
        """The best of some shardings of inputs with their constraints; None if no constraint gains.

        Args:
            assignments: The shardings of inputs.
            quick: Quick estimates, which order the neighbors of the best assignment.
        """
        found = [result for result in map(self._constrained, assignments) if result is not None]
        best = min(found, key=lambda result: self._score(result.quick), default=None)
        return None if best is None else self._refined(best, quick)

    def _score(self, quick: Quick) -> tuple[float, float]:
        return score(quick, self.space.problem.limit)

    def _constrained(self, assignment: Assignment) -> Result | None:
        search = ConstraintSearch(
            self.space.axes, lambda chosen: self.price(assignment, chosen), self._score, self.limits.until,
            self.limits.most,
        )  # fmt: skip
        if self.is_over() or not self.values:
            return None
        search.run(sites(self.annotated(assignment), self.values))
        self.tries += search.tries
        return Result(assignment, search.best, search.quick) if search.best and search.quick is not None else None

    def _refined(self, result: Result, quick: Mapping[Assignment, Quick | None]) -> Result:
        """The best neighbor of the shardings of the inputs, with the same constraints."""
        explorer = Explorer(self.space, self.limits, None, lambda assignment: self.price(assignment, result.chosen))
        explorer.evaluate(result.assignment)
        explorer.climb(quick)
        self.tries += len(explorer.found)
        best = explorer.best
        return result if best is None else Result(best.assignment, result.chosen, best.quick)

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

    def module_of(self, result: Result) -> Module:
        """The program with the shardings and constraints of a result."""
        return with_constraints(self.annotated(result.assignment), self.values, result.chosen, self.mesh)

    def plan_constraints(self, result: Result) -> tuple[PlanConstraint, ...]:
        """The constraints of a plan, each with its gain."""
        return tuple(self._plan_constraint(result, place) for place in sorted(result.chosen))

    def _plan_constraint(self, result: Result, place: int) -> PlanConstraint:
        value, name = self.values[place]
        rest = {other: dims for other, dims in result.chosen.items() if other != place}
        without = self.price(result.assignment, rest)
        seconds = 0.0 if without is None else without.seconds - result.quick.seconds
        bytes = 0.0 if without is None else without.bytes - result.quick.bytes
        dims = result.chosen[place]
        return PlanConstraint(
            name, value.function, *value.span, value.shape, value.element, dims, value.count, seconds, bytes
        )
