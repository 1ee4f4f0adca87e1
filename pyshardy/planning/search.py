"""One search over one mesh: the order of estimates, and the plan."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import zip_longest

from pyshardy.autopartition.advice import advice
from pyshardy.autopartition.constraints import LEAST_GAIN
from pyshardy.autopartition.decisions import decisions
from pyshardy.autopartition.explore import Explorer, Found, Limits
from pyshardy.autopartition.pricing import Quick
from pyshardy.autopartition.registry import (
    SearchTask,
    our_partitioner,
    registered_partitioner,
    run_partitioner,
    task_of,
)
from pyshardy.autopartition.space import Assignment, Space
from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.topology import make_topology
from pyshardy.errors import ShardyError, UsageError
from pyshardy.frontend.annotate import annotate_ports
from pyshardy.frontend.interface import InterfaceTensor, input_tensors, output_tensors
from pyshardy.ir.functions import functions
from pyshardy.ir.module import Module
from pyshardy.planning.constraining import Constraining, Result
from pyshardy.planning.options import DOING, Options, rank
from pyshardy.planning.ports import let_go, plan_specs
from pyshardy.quick_cost.layered import Border, LayeredCandidates
from pyshardy.report.constraints import PlanConstraint
from pyshardy.report.cost import format_duration
from pyshardy.report.plan import PlanRow, PlanSummary, Reason
from pyshardy.report.summary import format_bytes
from pyshardy.results.plan import Plan
from pyshardy.results.search_problem import problem_of
from pyshardy.transforms.layers import top_ops
from pyshardy.transforms.reshards.survey import distinct_shardings
from pyshardy.transforms.search_program import mesh_to_search

_LEAST_CHECKED = 24
_FEWER = 4
"""One in so many candidates is looked at carefully, but no fewer than `_LEAST_CHECKED`."""
_SHARE = 0.4
"""The part of the time that is for quick estimates; the rest is for careful ones."""
_WHOLE = 0.7
"""To partition an op of the whole program takes so much of the time in which an op of its short version is read."""
_LATEST = 0.9
"""After this part of the budget nothing is priced that only explains the plan."""
_FOR_CONSTRAINTS = 0.15
"""The part of the time that is kept for constraints."""
_TRIES, _LEAST_TRIES = 10, 24
"""For constraints one in so many candidates is tried, but no fewer than `_LEAST_TRIES`."""
_MOST_EXPERTS = 2
"""So many of the experts' tactics are constrained too."""
_MOST_TRIES = 8
"""So many of the best are partitioned if they turn out not to fit."""


@dataclass
class Search:
    """One search over one mesh.

    Attributes:
        explorer: Compares many candidates by quick estimates.
        checker: Compares the best of them and their neighbors by the estimate of `LayeredCandidates`.
        wholes: The partitioned candidates with the result of `pyshardy.cost`; None if partitioning fails.
    """

    module: Module
    options: Options
    keep: bool | Iterable[str]
    say: Callable[[str], None]
    wholes: dict[Assignment, PlanRow | None] = field(default_factory=dict)
    names: dict[Assignment, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    is_interrupted: bool = False
    whole_seconds: float = 0.0
    constrained: tuple[PlanRow, Result] | None = None
    constraints: tuple[PlanConstraint, ...] = ()
    plain: PlanRow | None = None
    tries: int = 0

    def __post_init__(self) -> None:
        self.started = time.monotonic()
        self.given = self.module
        self.module = let_go(self.module, self.keep)
        name, mesh = mesh_to_search(self.module.root)
        options = self.options
        self.mesh_name, self.mesh = name, mesh
        self.topology = make_topology(options.hardware, mesh.axes, options.networks, options.shape)
        self.problem = problem_of(self.module, self.topology, options.collectives, options.limit)
        self.prices = self._layered(self.module)
        now = time.monotonic()
        end = max(self.started + options.budget_s - self._seconds_of_whole(now), now + 0.2 * options.budget_s)
        end -= self._reserved(self._seconds_of_whole(now))
        limits = Limits(now + _SHARE * (end - now), options.candidates, options.seed)
        self.task: SearchTask = task_of(self.problem, limits, options.budget_s, self._watch)
        self.space: Space = self.task.space
        self.explorer = self.task.explorer
        most = max(_LEAST_CHECKED, options.candidates // _FEWER)
        self.checker = Explorer(
            self.space, Limits(end, most, options.seed), self._watch, self._careful, self.explorer.symmetry
        )
        self.inputs, self.outputs = input_tensors(self.module.root), output_tensors(self.module.root)

    def _layered(self, module: Module) -> LayeredCandidates | None:
        """What prices candidates without partitioning; None for a program that it does not take."""
        try:
            return LayeredCandidates(module, self.mesh_name, self.topology, self.options.collectives)
        except UsageError:
            return None

    def _seconds_of_whole(self, now: float) -> float:
        """How long it will about take to partition the program, by how long it took to read the short versions."""
        ops, read = len(top_ops(self.module.root)), len(self.problem.program.kind_of)
        return _WHOLE * (now - self.started) * ops / max(1, read)

    def _reserved(self, seconds_of_whole: float) -> float:
        """The time that is kept for constraints; none where it would not suffice to partition once more."""
        reserved = _FOR_CONSTRAINTS * self.options.budget_s
        return reserved if self.options.constraints and reserved > 2 * seconds_of_whole else 0.0

    def look(self) -> tuple[float, float] | None:
        """The score of the best tactic."""
        self.explorer.seed()
        best = self.explorer.best
        return None if best is None else self.explorer.score(best.quick)

    def run(self) -> Plan:
        """The plan."""
        try:
            self.explorer.seed()
            own = self._partitioned_by_user() if registered_partitioner() is not our_partitioner else None
            if own is None:
                self._learn()
                our_partitioner(self.task)
            self._check(own)
            self._finish(own)
            self._constrain()
        except KeyboardInterrupt:
            self.is_interrupted = True
            self.notes.append("it was interrupted: this is the best so far")
        return self._plan()

    def _partitioned_by_user(self) -> Assignment:
        found = run_partitioner(self.task)
        self.explorer.evaluate(found)
        self.names[found] = "what the registered partitioner found"
        return found

    def _watch(self, count: int, best: Found, at: str) -> None:
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
        """Look carefully at what seems best, and at what experts do; then at what is near to the best."""
        best = [found.assignment for found in self.explorer.ranked()]
        tactics = set(self.explorer.tactics.values())
        experts = [assignment for assignment in best if assignment in tactics]
        wanted = [] if own is None else [own]
        for one, other in zip_longest(best[:12], experts):
            wanted += [assignment for assignment in (one, other) if assignment is not None]
        self.checker.look_at("what seems best", dict.fromkeys(wanted))
        self.checker.climb(self.explorer.found)

    def _finish(self, own: Assignment | None) -> None:
        """Partition the best, and where prices may be a little off what comes behind it, as long as there is time."""
        ranked = [found.assignment for found in self.checker.ranked()] or [self.space.empty]
        tactics = set(self.explorer.tactics.values())
        experts = [assignment for assignment in ranked if assignment in tactics][:2]
        others = [] if self._is_like_whole else [*experts, *ranked[1:3], *([own] if own else [])]
        self._whole(ranked[0])
        for assignment in dict.fromkeys([*others, *ranked[1:_MOST_TRIES]]):
            best = self._best()
            is_done = assignment not in others and best is not None and best[0].fits
            if is_done or time.monotonic() + self.whole_seconds > self.started + self.options.budget_s:
                break
            self._whole(assignment)

    @property
    def _is_like_whole(self) -> bool:
        """Whether the careful estimate is the one of `pyshardy.cost`."""
        return self.prices is None or self.prices.is_exact

    def _best(self) -> tuple[PlanRow, Assignment] | None:
        """The best of what was partitioned."""
        found = [(row, assignment) for assignment, row in self.wholes.items() if row is not None]
        return min(found, key=lambda pair: (*rank(pair[0]), pair[1]), default=None)

    def _whole(self, assignment: Assignment) -> PlanRow | None:
        """The whole estimate of an assignment; None if it cannot be partitioned."""
        if assignment not in self.wholes:
            started = time.monotonic()
            self.wholes[assignment] = self.options.row("", self._annotated(assignment))
            self.whole_seconds = time.monotonic() - started
        return self.wholes[assignment]

    def _constrain(self) -> None:
        """Look for constraints that make the plan, or an expert's tactic, better than the plan; partition it then."""
        best = self._best()
        until = self.started + self.options.budget_s - 1.5 * self.whole_seconds
        if best is None or self.prices is None or not self.options.constraints or time.monotonic() > until:
            return
        limits = Limits(until, max(_LEAST_TRIES, self.options.candidates // _TRIES), self.options.seed)
        constraining = Constraining(
            self.module, self.mesh_name, self.space, self._layered, self._borders, self._annotated, limits
        )
        tactics = set(self.explorer.tactics.values())
        experts = [found.assignment for found in self.checker.ranked() if found.assignment in tactics]
        found = constraining.run(dict.fromkeys([best[1], *experts[:_MOST_EXPERTS]]), self.explorer.found)
        self.tries = constraining.tries
        row = None if found is None else self.options.row("", constraining.module_of(found))
        if found is not None and row is not None and _gains(row, best[0]):
            constraints = constraining.plan_constraints(found)
            self.constrained, self.constraints = (row, found), constraints

    def _borders(self, assignment: Assignment) -> tuple[Border, Border]:
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
        """The shardings of inputs and outputs that have none."""
        space = self.space
        for number, (group, dims) in enumerate(zip(space.groups, assignment)):
            sharding = space.sharding(number, dims).with_mesh(self.mesh_name)
            if group.fixed is None:
                for member in group.members:
                    yield "arg_attrs", self.inputs[member], sharding
            for output in group.outputs:
                if self.outputs[output].sharding is None:
                    yield "res_attrs", self.outputs[output], sharding

    def _plan(self) -> Plan:
        found = self._best()
        if found is None:
            best = self.checker.best or self.explorer.best
            assignment = self.space.empty if best is None else best.assignment
            row = self._whole(assignment)
            if row is None:
                raise UsageError(DOING, got="a program that cannot be partitioned", needed="one that `partition` takes")
            found = row, assignment
        chosen, assignment = found
        if self.constrained is not None:
            self.plain = chosen
            chosen, assignment = self.constrained[0], self.constrained[1].assignment
        reasons = () if self.is_interrupted else self._reasons(assignment)
        if not chosen.fits:
            self.notes += advice(self.space, assignment, chosen.bytes, self.options.limit)
        return Plan(self._summary(chosen, assignment, reasons), self.module)

    def _reasons(self, assignment: Assignment) -> tuple[Reason, ...]:
        """What decisions are worth: by the careful estimate as long as there is time, else by the quick one."""
        found = []
        for decision, without in decisions(self.space, assignment):
            for price in (self._careful_in_time, self.explorer.found.get):
                one, other = price(assignment), price(without)
                if one is not None and other is not None:
                    found.append(Reason(decision, other.seconds - one.seconds, other.bytes - one.bytes))
                    break
        return tuple(sorted(found, key=lambda reason: -reason.seconds))

    def _careful_in_time(self, assignment: Assignment) -> Quick | None:
        """The careful estimate, if it is known or there is time for it."""
        if assignment not in self.checker.found and time.monotonic() < self.started + _LATEST * self.options.budget_s:
            return self._careful(assignment)
        return self.checker.found.get(assignment)

    def _given_row(self) -> PlanRow | None:
        """What the program costs as the user gave it; partitioned if it is small."""
        name = "as it was given"
        if not self._is_sharded():
            row = self._row_of(name, self.space.empty)
            if row is not None:
                return row
        if self._is_like_whole:
            return self.options.row(name, self.given)
        prices = self._layered(self.given) if time.monotonic() < self.started + self.options.budget_s else None
        if prices is None:
            return None
        found = prices.price({}, {})
        return PlanRow(name, found.seconds, found.bytes, found.bytes <= self.options.limit, False)

    def _is_sharded(self) -> bool:
        """Whether anything in the program as it was given has a sharding."""
        return any(distinct_shardings(function) for function in functions(self.given.root))

    def _summary(self, chosen: PlanRow, assignment: Assignment, reasons: tuple[Reason, ...]) -> PlanSummary:
        options, explorer = self.options, self.explorer
        ended = "interruption" if self.is_interrupted else self.checker.ended_by or "nothing better"
        return PlanSummary(
            hardware=options.hardware.name,
            mesh=tuple(self.mesh.axes),
            collectives=options.collectives.value,
            limit=options.limit,
            specs=tuple(plan_specs(self.space, assignment, self.inputs, self.outputs)),
            chosen=PlanRow("the plan", *_figures(chosen)),
            rows=tuple(self._rows()),
            front=tuple(self._front()),
            reasons=reasons,
            candidates=len({**explorer.found, **self.checker.found}) + self.tries,
            exact=len(self.checker.found) + self.tries,
            seconds=round(time.monotonic() - self.started, 2),
            seed=options.seed,
            ended_by=ended,
            notes=tuple(self.notes),
            constraints=self.constraints,
        )

    def _rows(self) -> Iterable[PlanRow]:
        given = None if self.is_interrupted else self._given_row()
        if given is not None:
            yield given
        if self.plain is not None:
            yield PlanRow("the best plan without constraints", *_figures(self.plain))
        named = [*self.explorer.tactics.items(), *((name, one) for one, name in self.names.items())]
        found = [row for row in (self._row_of(name, tactic) for name, tactic in named) if row is not None]
        yield from sorted(found, key=lambda row: (not row.is_exact, *rank(row), row.name))

    def _row_of(self, name: str, assignment: Assignment) -> PlanRow | None:
        """The best that is known of an assignment."""
        assignment = self.explorer.symmetry.first(assignment)
        whole = self.wholes.get(assignment)
        if whole is not None:
            return PlanRow(name, *_figures(whole))
        careful, quick = self.checker.found.get(assignment), self.explorer.found.get(assignment)
        if careful is not None:
            fits = careful.bytes <= self.options.limit
            return PlanRow(name, careful.seconds, careful.bytes, fits, self._is_like_whole)
        if quick is not None:
            return PlanRow(name, quick.seconds, quick.bytes, quick.bytes <= self.explorer.limit, False)
        return None

    def _front(self) -> Iterable[PlanRow]:
        known = dict.fromkeys([*self.wholes, *self.checker.found])
        rows = [row for row in (self._row_of("", one) for one in known) if row is not None]
        least = math.inf
        for row in sorted(rows, key=lambda row: (row.seconds, row.bytes)):
            if row.bytes < least * 0.99:
                least = row.bytes
                yield row


def _gains(row: PlanRow, plain: PlanRow) -> bool:
    """Whether a plan with constraints is worth them."""
    if row.fits != plain.fits or not row.fits:
        return rank(row) < rank(plain)
    return row.seconds < plain.seconds * (1 - LEAST_GAIN)


def _figures(row: PlanRow) -> tuple[float, float, bool, bool]:
    return row.seconds, row.bytes, row.fits, row.is_exact
