"""One search over one mesh: the order of estimates, and the plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest

from pyshardy.autopartition.advice import advice
from pyshardy.autopartition.constraints import Constrained
from pyshardy.autopartition.decisions import decisions
from pyshardy.autopartition.explore import Candidate, Explorer, Limits
from pyshardy.autopartition.pricing import Quick
from pyshardy.autopartition.problem import Problem
from pyshardy.autopartition.registry import (
    Answer,
    SearchTask,
    our_partitioner,
    registered_partitioner,
    run_partitioner,
    task_of,
)
from pyshardy.autopartition.space import Assignment, Space
from pyshardy.autopartition.values import ValueFact, Values
from pyshardy.compilers.plugins import find_plugin
from pyshardy.compilers.target import find_target
from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.topology import make_topology
from pyshardy.errors import ShardyError, UsageError
from pyshardy.frontend.annotate import annotate_ports
from pyshardy.frontend.interface import InterfaceTensor, input_tensors, output_tensors
from pyshardy.ir.functions import functions
from pyshardy.ir.module import Module
from pyshardy.planning.candidates import LayeredCandidates, ShardingsByPosition
from pyshardy.planning.compiled import AS_GIVEN, MOST_RIVALS, Confirmed, Rival, confirmed
from pyshardy.planning.constraining import ConstrainedAssignment, Constraining, with_constraints
from pyshardy.planning.known import Known, figures
from pyshardy.planning.options import DOING, Keep, SearchOptions, gains, rank
from pyshardy.planning.ports import pinned, plan_specs, without_shardings
from pyshardy.planning.proof import MOST_TRIED, all_assignments, none_is_better
from pyshardy.report.constraints import PlanConstraint
from pyshardy.report.cost import format_duration
from pyshardy.report.plan import THE_PLAN, PlanReason, PlanRow, PlanSpec, PlanSummary
from pyshardy.report.summary import format_bytes
from pyshardy.results.plan import Plan
from pyshardy.results.search_problem import problem_of
from pyshardy.transforms.layers import top_ops
from pyshardy.transforms.named_values import NamedValue, named_values
from pyshardy.transforms.reshards.survey import distinct_shardings
from pyshardy.transforms.search_program import mesh_to_search

_LEAST_CHECKED = 24
_FEWER = 4
"""Careful estimates are made for one in this many candidates, but for at least `_LEAST_CHECKED`."""
_SHARE = 0.4
"""The share of the time for quick estimates; the rest is for careful ones."""
_WHOLE = 0.7
"""The time to partition an op of the whole program, as a share of the time to read an op of its short version."""
_LATEST = 0.9
"""After this share of the budget the search makes no more estimates that only explain the plan."""
_FOR_CONSTRAINTS = 0.15
"""The share of the time reserved for constraints."""
_TRIES, _LEAST_TRIES = 10, 24
"""The search of constraints prices one in `_TRIES` candidates, but at least `_LEAST_TRIES`."""
_MOST_EXPERTS = 2
"""The number of experts' tactics that are constrained too."""
_BY_USER = "what the registered partitioner found"
_PLAIN = "the best plan without constraints"
_MOST_TRIES = 8
"""The number of candidates that are partitioned if the first ones do not fit into memory."""


@dataclass
class Search:
    """One search over one mesh.

    Attributes:
        explorer: Compares many candidates by quick estimates.
        checker: Compares the best of them and their neighbours by the estimate of `LayeredCandidates`.
        known: The costs of candidates.
        all: All shardings of inputs, if they are few.
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
    constraints: tuple[PlanConstraint, ...] = ()
    plain: PlanRow | None = None
    tries: int = 0
    all: list[Assignment] = field(default_factory=list)
    given_row: PlanRow | None = None
    confirmed: Confirmed | None = None

    def __post_init__(self) -> None:
        self.started = time.monotonic()
        self.given = self.module
        self.pins: list[PlanSpec] = []
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
        self.problem = problem_of(self.module, self.topology, options.collectives, options.limit)
        self.prices = self._layered(self.module)
        now = time.monotonic()
        end = max(self.started + options.budget_s - self._seconds_of_whole(now), now + 0.2 * options.budget_s)
        end -= self._reserved(self._seconds_of_whole(now))
        limits = Limits(now + _SHARE * (end - now), options.candidates, options.seed)
        between = Values(self._problem_with, self._facts) if options.constraints else Values(
            self._problem_with, none_because="constraints=False leaves intermediate values alone; leave it out"
        )  # fmt: skip
        self.task: SearchTask = task_of(self.problem, limits, options.budget_s, self._watch, between)
        self.space: Space = self.task.space
        self.explorer = self.task.explorer
        most = max(_LEAST_CHECKED, options.candidates // _FEWER)
        self.checker = Explorer(
            self.space, Limits(end, most, options.seed), self._watch, self._careful, self.explorer.symmetry
        )
        self.known = Known(options, self.explorer, self.checker, self.prices is None or self.prices.is_exact)
        self.inputs, self.outputs = input_tensors(self.module.root), output_tensors(self.module.root)

    @cached_property
    def values(self) -> list[NamedValue]:
        """The intermediate values that can be constrained."""
        return named_values(self.module.root)

    def _facts(self) -> list[ValueFact]:
        return [one.fact for one in self.values]

    def _problem_with(self, chosen: Constrained) -> Problem:
        """The problem with constraints."""
        module = with_constraints(self.module, self.values, chosen, self.mesh_name)
        return problem_of(module, self.topology, self.options.collectives, self.options.limit)

    def _layered(self, module: Module) -> LayeredCandidates | None:
        """The careful estimator, which does not partition; None for a program that it does not support."""
        try:
            return LayeredCandidates(module, self.mesh_name, self.topology, self.options.collectives)
        except UsageError:
            return None

    def _seconds_of_whole(self, now: float) -> float:
        """The expected seconds to partition the program, from the time that reading its short versions took."""
        ops, read = len(top_ops(self.module.root)), len(self.problem.program.kind_of)
        return _WHOLE * (now - self.started) * ops / max(1, read)

    def _reserved(self, seconds_of_whole: float) -> float:
        """The time reserved for constraints; none if it would not suffice to partition once more."""
        reserved = _FOR_CONSTRAINTS * self.options.budget_s
        return reserved if self.options.constraints and reserved > 2 * seconds_of_whole else 0.0

    def look(self) -> tuple[float, float] | None:
        """The score of the best tactic by quick estimates; None if none propagates."""
        self.explorer.seed()
        best = self.explorer.best
        return None if best is None else self.explorer.score(best.quick)

    def run(self) -> Plan:
        """Search, and return the best plan."""
        try:
            self.explorer.seed()
            own = self._partitioned_by_user() if registered_partitioner() is not our_partitioner else None
            if own is None:
                self._learn()
                our_partitioner(self.task)
            self._check(None if own is None else own.assignment)
            self._finish(None if own is None else own.assignment)
            self._constrain(own)
            self._confirm()
        except KeyboardInterrupt:
            self.is_interrupted = True
            self.notes.append("the search was interrupted: this is the best plan so far")
        return self._plan()

    def _partitioned_by_user(self) -> Answer:
        found = run_partitioner(self.task)
        self.explorer.evaluate(found.assignment)
        if not found.constraints:
            self.names[found.assignment] = _BY_USER
        return found

    def _watch(self, count: int, best: Candidate, at: str) -> None:
        quick = best.quick
        self.say(
            f"{at}, candidate {count}: about {format_duration(quick.seconds)}, {format_bytes(round(quick.bytes))} "
            f"after {time.monotonic() - self.started:.1f} s"
        )

    def _careful(self, assignment: Assignment) -> Quick | None:
        """The estimate of an assignment that `pyshardy.cost` would give, or nearly so where layers repeat."""
        if self.prices is None:
            row = self._whole(assignment)
            return None if row is None else Quick(row.seconds, row.bytes)
        try:
            found = self.prices.price(*self._borders(assignment))
        except ShardyError:
            return None
        return Quick(found.seconds, found.bytes)

    def _learn(self) -> None:
        """Compare the quick estimate of memory with the careful one, for a few tactics, and correct the limit."""
        ratios = []
        for found in self.explorer.ranked()[:2]:
            careful = self.checker.evaluate(found.assignment)
            if careful is not None and found.quick.bytes:
                ratios.append(careful.bytes / found.quick.bytes)
        if ratios:
            self.explorer.limit = self.options.limit / min(4.0, max(1.0, *ratios))
            best = self.explorer.ranked()
            self.explorer.best = best[0] if best else None

    def _check(self, own: Assignment | None) -> None:
        """Price carefully the candidates with the best quick estimates and the tactics of experts, then neighbours."""
        best = [found.assignment for found in self.explorer.ranked()]
        tactics = set(self.explorer.tactics.values())
        experts = [assignment for assignment in best if assignment in tactics]
        wanted = [] if own is None else [own]
        for one, other in zip_longest(best[:12], experts):
            wanted += [assignment for assignment in (one, other) if assignment is not None]
        self.checker.look_at("careful estimates", dict.fromkeys(wanted))
        self.checker.climb(self.explorer.found)
        if self.known.is_like_whole and self.prices is not None:
            self.all = all_assignments(self.space, min(MOST_TRIED, self.checker.limits.most - 1))
            self.checker.look_at("all shardings of inputs", self.all)

    def _finish(self, own: Assignment | None) -> None:
        """Partition the best candidate; if the careful estimate is inexact, also the next ones while there is time."""
        ranked = [found.assignment for found in self.checker.ranked()] or [self.space.empty]
        tactics = set(self.explorer.tactics.values())
        experts = [assignment for assignment in ranked if assignment in tactics][:2]
        others = [] if self.known.is_like_whole else [*experts, *ranked[1:3], *([own] if own else [])]
        self._whole(ranked[0])
        for assignment in dict.fromkeys([*others, *ranked[1:_MOST_TRIES]]):
            best = self.known.best()
            is_done = assignment not in others and best is not None and best[0].fits
            if is_done or time.monotonic() + self.whole_seconds > self.started + self.options.budget_s:
                break
            self._whole(assignment)

    def _whole(self, assignment: Assignment) -> PlanRow | None:
        """The whole estimate of an assignment; None if it cannot be partitioned."""
        if assignment not in self.known.wholes:
            started = time.monotonic()
            self.known.wholes[assignment] = self.options.row("", self._annotated(assignment))
            self.whole_seconds = time.monotonic() - started
        return self.known.wholes[assignment]

    def _constrain(self, own: Answer | None) -> None:
        """Look for constraints that make the plan, or an expert's tactic, better than the plan; partition it then.

        What a registered partitioner found with constraints is partitioned in any case.
        """
        best = self.known.best()
        until = self.started + self.options.budget_s - 1.5 * self.whole_seconds
        limits = Limits(until, max(_LEAST_TRIES, self.options.candidates // _TRIES), self.options.seed)
        has_own = own is not None and bool(own.constraints)
        if best is None or not (has_own or (self._may_constrain and time.monotonic() <= until)):
            return
        constraining = Constraining(
            self.module, self.mesh_name, self.values, self.space, self._layered, self._borders, self._annotated, limits
        )
        if own is not None and has_own:
            self._take(own, constraining, best[0])
        if self._may_constrain and time.monotonic() <= until:
            self._search_constraints(own, constraining, best)

    @property
    def _may_constrain(self) -> bool:
        """Whether the built-in search may look for constraints, and can price them."""
        return self.options.constraints and self.prices is not None

    def _take(self, own: Answer, constraining: Constraining, best: PlanRow) -> None:
        """Partition what a registered partitioner found with constraints; if it is better, it is the plan."""
        row = self.options.row(_BY_USER, constraining.module_of(own))
        if row is None:
            self.notes.append(f"{_BY_USER} cannot be partitioned")
            return
        self.named.append(row)
        if rank(row) < rank(best):
            found = ConstrainedAssignment(own, Quick(row.seconds, row.bytes))
            self.constrained, self.constraints = (row, found), constraining.plan_constraints(found)

    def _search_constraints(
        self, own: Answer | None, constraining: Constraining, best: tuple[PlanRow, Assignment]
    ) -> None:
        tactics = set(self.explorer.tactics.values())
        experts = [found.assignment for found in self.checker.ranked() if found.assignment in tactics]
        starts = [Answer(one, {}) for one in dict.fromkeys([best[1], *experts[:_MOST_EXPERTS]])]
        starts += [] if own is None or not own.constraints else [own]
        found = constraining.run(starts, self.explorer.found)
        self.tries = constraining.tries
        row = None if found is None else self.options.row("", constraining.module_of(found.answer))
        known = best[0] if self.constrained is None else self.constrained[0]
        if found is not None and row is not None and gains(row, known):
            self.constrained, self.constraints = (row, found), constraining.plan_constraints(found)

    def _confirm(self) -> None:
        """Ask the compiler about the best plans and the given program; the plan is the one with its best program."""
        if not self.options.compiler or self.known.best() is None:
            return
        self.given_row = self.options.row(AS_GIVEN, self.given)
        rivals = list(self._rivals())
        if self.given_row is not None:
            rivals.append(Rival(self.given_row, self.given))
        self.confirmed = confirmed(rivals, self.options, self.say)
        self.notes += self.confirmed.notes

    def _rivals(self) -> Iterator[Rival]:
        """The best plans: with constraints, without, those of experts, and the next ones by estimates."""
        if self.constrained is not None:
            with_them, found = self.constrained
            chosen = found.answer
            module = with_constraints(
                self._annotated(chosen.assignment), self.values, chosen.constraints, self.mesh_name
            )
            yield Rival(PlanRow(THE_PLAN, *figures(with_them)), module, chosen.assignment, found)
        best = self.known.best()
        assert best is not None
        tactics = {assignment: name for name, assignment in self.explorer.tactics.items()}
        ranked = [found.assignment for found in self.checker.ranked()]
        experts = [assignment for assignment in ranked if assignment in tactics]
        first = _PLAIN if self.constrained is not None else THE_PLAN
        names = {best[1]: first} | {one: tactics[one] for one in experts[:_MOST_EXPERTS] if one != best[1]}
        left = MOST_RIVALS - (self.constrained is not None)
        for assignment in list(dict.fromkeys([*names, *ranked]))[:left]:
            row = self._whole(assignment)
            if row is not None:
                name = names.get(assignment) or tactics.get(assignment) or "the next best plan by estimates"
                yield Rival(PlanRow(name, *figures(row)), self._annotated(assignment), assignment)

    def _borders(self, assignment: Assignment) -> tuple[ShardingsByPosition, ShardingsByPosition]:
        """The shardings of inputs and outputs by position."""
        given = list(self._given(assignment))
        inputs, outputs = (
            {port.index: sharding for kind, port, sharding in given if kind == name}
            for name in ("arg_attrs", "res_attrs")
        )
        return inputs, outputs

    def _annotated(self, assignment: Assignment) -> Module:
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

    def _plan(self) -> Plan:
        found = self.known.best()
        if found is None:
            best = self.checker.best or self.explorer.best
            assignment = self.space.empty if best is None else best.assignment
            row = self._whole(assignment)
            if row is None:
                raise UsageError(
                    DOING, got="a program that cannot be partitioned", needed="one that `partition` accepts"
                )
            found = row, assignment
        chosen, assignment = found
        if self.confirmed is not None:
            plan = self.confirmed.plan
            assert plan.assignment is not None
            if plan.constrained is None:
                self.constrained, self.constraints = None, ()
            chosen, assignment = plan.row, plan.assignment
        if self.constrained is not None:
            self.plain = found[0]
            chosen, assignment = self.constrained[0], self.constrained[1].answer.assignment
        reasons = () if self.is_interrupted else self._reasons(assignment)
        if not chosen.fits:
            self.notes += advice(self.space, assignment, chosen.bytes, self.options.limit)
        return Plan(self._summary(chosen, assignment, reasons), self.module)

    def _reasons(self, assignment: Assignment) -> tuple[PlanReason, ...]:
        """The value of every decision: by the careful estimate while there is time, else by the quick one."""
        found = []
        for decision, without in decisions(self.space, assignment):
            for price in (self._careful_in_time, self.explorer.found.get):
                one, other = price(assignment), price(without)
                if one is not None and other is not None:
                    found.append(PlanReason(decision, other.seconds - one.seconds, other.bytes - one.bytes))
                    break
        return tuple(sorted(found, key=lambda reason: -reason.seconds))

    def _careful_in_time(self, assignment: Assignment) -> Quick | None:
        """The careful estimate, if it is known or there is time for it."""
        if assignment not in self.checker.found and time.monotonic() < self.started + _LATEST * self.options.budget_s:
            return self._careful(assignment)
        return self.checker.found.get(assignment)

    def _given_row(self) -> PlanRow | None:
        """The estimate of the program as the user gave it; None if there is no time for it."""
        if self.given_row is not None:
            return self.given_row
        name = AS_GIVEN
        if not self._is_sharded():
            row = self.known.row_of(name, self.space.empty)
            if row is not None:
                return row
        if self.known.is_like_whole:
            return self.options.row(name, self.given)
        prices = self._layered(self.given) if time.monotonic() < self.started + self.options.budget_s else None
        if prices is None:
            return None
        found = prices.price({}, {})
        return PlanRow(name, found.seconds, found.bytes, found.bytes <= self.options.limit, False)

    def _is_sharded(self) -> bool:
        """Whether any value of the given program has a sharding."""
        return any(distinct_shardings(function) for function in functions(self.given.root))

    def _summary(self, chosen: PlanRow, assignment: Assignment, reasons: tuple[PlanReason, ...]) -> PlanSummary:
        options, explorer = self.options, self.explorer
        ended = "interruption" if self.is_interrupted else self.checker.ended_by or "nothing better"
        return PlanSummary(
            hardware=options.hardware.name,
            mesh=tuple(self.mesh.axes),
            collectives=options.collectives.value,
            limit=options.limit,
            specs=(*self.pins, *plan_specs(self.space, assignment, self.inputs, self.outputs)),
            chosen=PlanRow(THE_PLAN, *figures(chosen)),
            rows=tuple(self._rows()),
            front=tuple(self.known.front()),
            reasons=reasons,
            candidates=len({**explorer.found, **self.checker.found}) + len(self.task.between.found) + self.tries,
            exact=len(self.checker.found) + self.tries,
            seconds=round(time.monotonic() - self.started, 2),
            seed=options.seed,
            ended_by=ended,
            notes=tuple(self.notes),
            constraints=self.constraints,
            bound=0.0 if self.prices is None else self.prices.least_seconds(),
            all_tried=len(self.all) if none_is_better(self.known, self.all, chosen) else 0,
            compiler="" if self.confirmed is None else self.confirmed.compiler,
            compiled=() if self.confirmed is None else self.confirmed.rows,
        )

    def _rows(self) -> Iterable[PlanRow]:
        given = None if self.is_interrupted else self._given_row()
        if given is not None:
            yield given
        if self.plain is not None:
            yield PlanRow(_PLAIN, *figures(self.plain))
        named = [*self.explorer.tactics.items(), *((name, one) for one, name in self.names.items())]
        found = [row for row in (self.known.row_of(name, tactic) for name, tactic in named) if row is not None]
        found += self.named
        yield from sorted(found, key=lambda row: (not row.is_exact, *rank(row), row.name))
