"""The state of a search over one mesh: the program, the candidates with their estimates, and what was found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pyshardy.compilers.plugins import find_plugin
from pyshardy.compilers.target import find_target
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.text import format_bytes
from pyshardy.costing.step_cost import StepCost
from pyshardy.costing.topology import make_topology
from pyshardy.errors import ShardyError, UsageError
from pyshardy.frontend.annotate import annotate_ports
from pyshardy.frontend.interface import InterfaceTensor, input_tensors, output_tensors
from pyshardy.ir.copy_module import copy_module
from pyshardy.ir.module import Module
from pyshardy.ir.named_values import NamedValue, named_values, with_shardings
from pyshardy.ir.source_values import SourceValue, constrained, insert_constraints, source_values
from pyshardy.report.constraints import PlanConstraint
from pyshardy.report.cost import format_duration
from pyshardy.report.plan import PlanRow, PlanSpec
from pyshardy.searching.autopartition.constraints import Constrained
from pyshardy.searching.autopartition.explore import Candidate, Explorer, Limits
from pyshardy.searching.autopartition.objective import Objective
from pyshardy.searching.autopartition.problem import Problem
from pyshardy.searching.autopartition.registry import (
    Answer,
    SearchTask,
    task_of,
)
from pyshardy.searching.autopartition.space import Assignment, Space
from pyshardy.searching.autopartition.values import ConstrainableValues
from pyshardy.searching.planning.candidates import CollectiveCounts, LayeredCandidates, ShardingsByPosition
from pyshardy.searching.planning.compiled import Confirmed
from pyshardy.searching.planning.constraining import ConstrainedAssignment, Constraining, ExpertPlan
from pyshardy.searching.planning.estimates import Estimates, step_cost_of
from pyshardy.searching.planning.forbidding import Forbidden
from pyshardy.searching.planning.options import Keep, SearchOptions
from pyshardy.searching.planning.ports import pinned, without_shardings
from pyshardy.searching.program.layers import top_ops
from pyshardy.searching.program.search_program import ShortProgram, mesh_to_search, problem_of, short_program
from pyshardy.source.values import ValueFact

_LEAST_CHECKED = 24
_FEWER = 3
"""Exact estimates are made for one in this many candidates, but for at least `_LEAST_CHECKED`."""
_SHARE = 0.4
"""The share of the time for rough estimates; the rest is for exact ones."""
_WHOLE = 0.5
"""The time to partition an op of the whole program, as a share of the time to read an op of its short version."""
_LATEST = 0.9
"""After this share of the budget no more exact estimates are made but those that decide."""
_FOR_CONSTRAINTS = 0.3
"""The share of the time reserved for constraints."""


WITHOUT_CONSTRAINTS = "the best plan without constraints"
"""The name of that plan beside the plan."""


@dataclass
class SearchState:
    """The state of one search over one mesh.

    Attributes:
        explorer: Compares many candidates by rough estimates.
        checker: Compares the best of them and their neighbours by the estimate of `LayeredCandidates`.
        estimates: The costs of candidates.
        all: All shardings of inputs, if they are few.
        constrained: The plan, if it has constraints, with its whole estimate.
        unconstrained: The best plan without constraints, beside a plan with some.
        experts: The plans of experts with constraints that were priced.
        constraining: The search for constraints, if there was one.
        given_row: The estimate of the program as it was given.
        is_given: Whether no plan is better than the program as it was given.
        as_given: The axes that inputs have in the program as it was given.
    """

    module: Module
    options: SearchOptions
    keep: Keep
    say: Callable[[str], None]
    names: dict[Assignment, str] = field(default_factory=dict)
    named: list[PlanRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_interrupted: bool = False
    whole_seconds: float = 0.0
    constrained: tuple[PlanRow, ConstrainedAssignment] | None = None
    unconstrained: PlanRow | None = None
    experts: list[ExpertPlan] = field(default_factory=list)
    constraining: Constraining | None = None
    tries: int = 0
    all: list[Assignment] = field(default_factory=list)
    given_row: PlanRow | None = None
    is_given: bool = False
    as_given: Assignment | None = None
    confirmed: Confirmed | None = None

    def __post_init__(self) -> None:
        self.started = time.monotonic()
        self.given = self.module
        self.pins: list[PlanSpec] = []
        self._counts: dict[object, CollectiveCounts | None] = {}
        if isinstance(self.keep, Mapping):
            self.module, self.pins = pinned(without_shardings(self.module, False), self.keep)
        else:
            self.module = without_shardings(self.module, self.keep)
        name, mesh = mesh_to_search(self.module.root)
        options = self.options
        if options.compiler:  # what cannot be asked is said before the search, not after
            find_plugin(find_target(options.compiler, mesh.size).platform)
        self.mesh_name, self.mesh = name, mesh
        self.topology = make_topology(options.hardware, mesh.axes, options.networks, options.shape)
        problem = self._problem({})
        self.problem = options.forbidden.applied(problem)
        self.prices = self.layered({})
        now = time.monotonic()
        end = max(self.started + options.budget_s - self.seconds_of_whole(now), now + 0.2 * options.budget_s)
        end -= self.reserved(self.seconds_of_whole(now))
        limits = Limits(now + _SHARE * (end - now), options.candidates, options.seed)
        between = ConstrainableValues(self._problem, self._facts) if options.constraints else ConstrainableValues(
            self._problem, none_because="constraints=False leaves intermediate values alone; leave it out"
        )  # fmt: skip
        self.task: SearchTask = task_of(self.problem, limits, options.budget_s, self.watch, between)
        self.space: Space = self.task.space
        self.explorer = self.task.explorer
        most = max(_LEAST_CHECKED, options.candidates // _FEWER)
        self.checker = Explorer(
            self.space, Limits(end, most, options.seed), self.watch, self.exact, self.explorer.symmetry
        )
        self.estimates = Estimates(options, self.explorer, self.checker, self.prices is None or self.prices.is_whole)
        self.inputs, self.outputs = input_tensors(self.module.root), output_tensors(self.module.root)

    @property
    def objective(self) -> Objective:
        """What makes a plan better than another."""
        return self.options.objective

    @property
    def may_be_given(self) -> bool:
        """Whether the program as it was given may be the plan: not if it may lack shardings that are asked for."""
        return not self.pins and self.options.forbidden == Forbidden()

    @property
    def explained_by(self) -> float:
        """The time after which only known and rough estimates explain the plan."""
        return self.started + _LATEST * self.options.budget_s

    @cached_property
    def values(self) -> list[NamedValue]:
        """The intermediate values that can be constrained."""
        return named_values(self.module.root)

    def _facts(self) -> list[ValueFact]:
        return [one.fact for one in self.values]

    @cached_property
    def _layers(self) -> ShortProgram:
        """The program with three layers of every kind, which must not change."""
        with self.module.context:
            return short_program(self.module.root)

    @cached_property
    def _short_values(self) -> dict[object, SourceValue]:
        """The intermediate values of the short program, by their expression and type."""
        return {_key(value): value for value in source_values(self._layers[0].root)}

    def _short(self, chosen: Constrained) -> ShortProgram:
        """A copy of the short program with constraints."""
        constraints = with_shardings(self.values, chosen, self.mesh_name) if chosen else []
        short, families = self._layers
        with self.module.context:
            if any(_key(value) not in self._short_values for value, _ in constraints):
                return short_program(constrained(self.module, constraints).root)
            root = copy_module(short.root)
            insert_constraints(root, [(self._short_values[_key(value)], sharding) for value, sharding in constraints])
        return short._replace(root=root), families

    def _problem(self, chosen: Constrained) -> Problem:
        """The problem with constraints."""
        options = self.options
        return problem_of(self.module, self.topology, options.collectives, options.objective, self._short(chosen))

    def layered(self, chosen: Constrained) -> LayeredCandidates | None:
        """The exact estimator with constraints; None for a program that it does not support."""
        return self.layered_of(self.module, self._short(chosen))

    def layered_of(
        self, module: Module, short_one: ShortProgram | None = None, is_open: bool = False
    ) -> LayeredCandidates | None:
        """The exact estimator of a program, which partitions a short one; None if it does not support it."""
        try:
            return LayeredCandidates(
                module, self.mesh_name, self.topology, self.options.collectives, is_open, short_one
            )
        except UsageError:
            return None

    def seconds_of_whole(self, now: float) -> float:
        """The expected seconds to partition the program, from the time that reading its short versions took."""
        ops, read = len(top_ops(self.module.root)), len(self.problem.program.kind_of)
        return _WHOLE * (now - self.started) * ops / max(1, read)

    def reserved(self, seconds_of_whole: float) -> float:
        """The time reserved for constraints; none if it would not suffice to partition once more."""
        reserved = _FOR_CONSTRAINTS * self.options.budget_s
        return reserved if self.options.constraints and reserved > seconds_of_whole else 0.0

    def watch(self, count: int, best: Candidate, at: str) -> None:
        """Tell the progress."""
        cost = best.cost
        self.say(
            f"{at}, candidate {count}: about {format_duration(cost.seconds)}, {format_bytes(round(cost.bytes))} "
            f"after {time.monotonic() - self.started:.1f} s"
        )

    def exact(self, assignment: Assignment) -> StepCost | None:
        """The estimate of an assignment that `pyshardy.cost` would give, or nearly so where layers repeat."""
        if self.prices is None:
            row = self.whole(assignment)
            return None if row is None else step_cost_of(row)
        try:
            found = self.prices.price(*self.borders(assignment))
        except ShardyError:
            return None
        return found

    def plain(self, assignment: Assignment) -> StepCost | None:
        """The same, also after the end of the search for the shardings of inputs."""
        assignment = self.explorer.symmetry.first(assignment)
        if assignment not in self.checker.found:
            self.checker.found[assignment] = self.exact(assignment)
        return self.checker.found[assignment]

    def is_priced(self, answer: Answer) -> bool:
        """Whether an exact estimate of a plan is known."""
        if answer.constraints:
            return self.constraining is not None and self.constraining.is_priced(answer)
        return self.explorer.symmetry.first(answer.assignment) in self.checker.found

    def price(self, answer: Answer) -> StepCost | None:
        """The exact estimate of a plan, with constraints or without."""
        if not answer.constraints:
            return self.plain(answer.assignment)
        return None if self.constraining is None else self.constraining.price(*answer)

    def rough(self, answer: Answer) -> StepCost | None:
        """The rough estimate of a plan, with constraints or without."""
        if answer.constraints:
            return self.task.between.price(self.space, answer.assignment, answer.constraints)
        first = self.explorer.symmetry.first(answer.assignment)
        if first not in self.explorer.found:
            self.explorer.found[first] = self.explorer.price(first)
        return self.explorer.found[first]

    def counts(self, answer: Answer, until: float) -> CollectiveCounts | None:
        """The collectives of a plan; None if they are not known at a time, or the estimator does not support it.

        Args:
            answer: The plan.
            until: The time, as `time.monotonic` counts. The exact estimate is then known, too.
        """
        key = answer.assignment, tuple(sorted(answer.constraints.items()))
        if key not in self._counts and time.monotonic() < until:
            prices = self.prices
            if answer.constraints:
                prices = None if self.constraining is None else self.constraining.estimator(answer.constraints)
            try:
                found = None if prices is None else prices.price_with_collectives(*self.borders(answer.assignment))
            except ShardyError:
                found = None
            if found is not None:
                self._keep(answer, found[0])
            self._counts[key] = None if found is None else found[1]
        return self._counts.get(key)

    def _keep(self, answer: Answer, cost: StepCost) -> None:
        """Keep an exact estimate."""
        if not answer.constraints:
            self.checker.found.setdefault(self.explorer.symmetry.first(answer.assignment), cost)
        elif self.constraining is not None:
            self.constraining.keep(answer, cost)

    def whole(self, assignment: Assignment) -> PlanRow | None:
        """The whole estimate of an assignment; None if it cannot be partitioned."""
        if assignment not in self.estimates.wholes:
            started = time.monotonic()
            self.estimates.wholes[assignment] = self.options.row("", self.annotated(assignment))
            self.whole_seconds = time.monotonic() - started
        return self.estimates.wholes[assignment]

    def plan_constraints(self) -> tuple[PlanConstraint, ...]:
        """The constraints of the plan, each with its gain, which costs an exact estimate."""
        if self.constrained is None or self.constraining is None:
            return ()
        return self.constraining.plan_constraints(self.constrained[1])

    def borders(self, assignment: Assignment) -> tuple[ShardingsByPosition, ShardingsByPosition]:
        """The shardings of inputs and outputs by position."""
        given = list(self._given(assignment))
        inputs, outputs = (
            {port.index: sharding for kind, port, sharding in given if kind == name}
            for name in ("arg_attrs", "res_attrs")
        )
        return inputs, outputs

    def annotated(self, assignment: Assignment) -> Module:
        """The program with the shardings of an assignment on its inputs and outputs."""
        return annotate_ports(self.module, self._given(assignment))

    def _given(self, assignment: Assignment) -> Iterable[tuple[str, InterfaceTensor, TensorSharding]]:
        """The shardings that an assignment gives to inputs and outputs."""
        space = self.space
        for number, (group, dims) in enumerate(zip(space.groups, assignment)):
            sharding = space.sharding(number, dims).with_mesh(self.mesh_name)
            if group.is_free:
                for member in group.members:
                    yield "arg_attrs", self.inputs[member], sharding
            for output in group.outputs:
                if self.outputs[output].sharding is None:
                    yield "res_attrs", self.outputs[output], sharding


def _key(value: SourceValue) -> object:
    """What a value of a program and of its short version have in common."""
    return value.span, value.function, value.shape, value.element
