"""One search over one mesh: what is estimated when, and the plan that comes out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyshardy.autopartition.advice import advice
from pyshardy.autopartition.decisions import decisions
from pyshardy.autopartition.explore import Found, Limits
from pyshardy.autopartition.moves import all_moves
from pyshardy.autopartition.registry import (
    SearchTask,
    our_partitioner,
    registered_partitioner,
    run_partitioner,
    task_of,
)
from pyshardy.autopartition.space import Assignment, Space
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.hardware import Hardware
from pyshardy.costing.topology import make_topology
from pyshardy.errors import ShardyError, UsageError
from pyshardy.estimating import cost
from pyshardy.frontend.annotate import annotate_ports, matching_names
from pyshardy.frontend.interface import input_tensors, output_tensors
from pyshardy.ir.module import Module
from pyshardy.report.cost import format_duration
from pyshardy.report.plan import PlanRow, PlanSpec, PlanSummary, Reason
from pyshardy.report.summary import format_bytes
from pyshardy.results.plan import Plan
from pyshardy.results.search_problem import problem_of
from pyshardy.transforms.search_program import mesh_to_search

DOING = "searching for shardings"
MOST_CANDIDATES = 2000
_MOST_EXACT = 24
_SMALL = 20_000
"""A program of so many ops is partitioned once, to see what is near to the best; a smaller one more often."""
_SHARE = 0.55
"""The part of the budget that is for quick estimates; the rest is for partitioning what they found."""


@dataclass(frozen=True)
class Options:
    """What a search is told beside the program.

    Attributes:
        hardware: The chip.
        networks: The networks of mesh axes.
        shape: The dimensions of the torus.
        collectives: How collectives are priced.
        limit: Bytes that a device may use.
        budget_s: How long the search may take.
        candidates: How many candidates it may look at.
        seed: Of what it chooses at random.
    """

    hardware: Hardware
    networks: Mapping[str, str] | None
    shape: Sequence[int] | None
    collectives: CollectiveModel
    limit: float
    budget_s: float
    candidates: int
    seed: int


@dataclass
class Search:
    """One search over one mesh."""

    module: Module
    options: Options
    keep: bool | Iterable[str]
    say: Callable[[str], None]
    exact: dict[Assignment, PlanRow | None] = field(default_factory=dict)
    names: dict[Assignment, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    is_interrupted: bool = False
    given_row: PlanRow | None = None

    def __post_init__(self) -> None:
        self.started = time.monotonic()
        self.given = self.module
        self.module = _let_go(self.module, self.keep)
        name, mesh = mesh_to_search(self.module.root)
        options = self.options
        self.mesh = mesh
        self.topology = make_topology(options.hardware, mesh.axes, options.networks, options.shape)
        self.problem = problem_of(self.module, self.topology, options.collectives, options.limit)
        until = self.started + options.budget_s * _SHARE
        limits = Limits(until, options.candidates, options.seed)
        self.task: SearchTask = task_of(self.problem, limits, options.budget_s, self._watch)
        self.space: Space = self.task.space
        self.explorer = self.task.explorer
        self.inputs, self.outputs = input_tensors(self.module.root), output_tensors(self.module.root)

    def look(self) -> tuple[float, float] | None:
        """The score of the best tactic."""
        self.explorer.seed()
        best = self.explorer.best
        return None if best is None else self.explorer.score(best.quick)

    def run(self) -> Plan:
        """The plan."""
        try:
            self.explorer.seed()
            self._learn()
            own = self._partitioned_by_user() if registered_partitioner() is not our_partitioner else None
            if own is None:
                our_partitioner(self.task)
            self._confirm(own)
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

    def _learn(self) -> None:
        """Compare the quick estimate of memory with the whole one, for a few tactics, and correct the limit."""
        ratios = []
        self._evaluate_given()
        for found in self.explorer.ranked()[:2]:
            row = self._evaluate(found.assignment)
            if row is not None and found.quick.bytes:
                ratios.append(row.bytes / found.quick.bytes)
        if ratios:
            self.explorer.limit = self.options.limit / min(4.0, max(1.0, *ratios))
            best = self.explorer.ranked()
            self.explorer.best = best[0] if best else None

    def _evaluate_given(self) -> None:
        """What the program costs as the user gave it."""
        self.given_row = self._row("as it was given", self.given)

    def _confirm(self, own: Assignment | None) -> None:
        """Partition what seems best, and what experts do; then what is near to the best."""
        wanted: list[Assignment] = [] if own is None else [own]
        best = [found.assignment for found in self.explorer.ranked()]
        tactics = set(self.explorer.tactics.values())
        experts = [assignment for assignment in best if assignment in tactics]
        wanted += best[:4]
        for one, other in zip(best[4:12], [*experts, *best[12:]]):
            wanted += [other, one]
        for assignment in dict.fromkeys([*wanted, *experts]):
            if self._is_over(_MOST_EXACT):
                break
            self._evaluate(assignment)
        self._polish()

    def _polish(self) -> None:
        """Partition what is one step from the best, and go on from what is better, where that takes little time."""
        most = _SMALL // max(1, len(self.problem.program.kind_of))
        seen: set[Assignment] = set()
        while (best := self._best()) is not None and best[1] not in seen:
            seen.add(best[1])
            for step in dict.fromkeys(all_moves(self.space, best[1])):
                if self._is_over(most):
                    return
                self._evaluate(step)

    def _best(self) -> tuple[PlanRow, Assignment] | None:
        """The best of what was partitioned."""
        found = [(row, assignment) for assignment, row in self.exact.items() if row is not None]
        return min(found, key=lambda pair: (*_rank(pair[0]), pair[1]), default=None)

    def _is_over(self, most: int) -> bool:
        if len(self.exact) >= most:
            return True
        if time.monotonic() > self.started + self.options.budget_s:
            self.explorer.ended_by = "time"
            return True
        return False

    def _evaluate(self, assignment: Assignment) -> PlanRow | None:
        """The whole estimate of an assignment; None if it cannot be partitioned."""
        if assignment not in self.exact:
            self.exact[assignment] = self._row("", self._annotated(assignment))
        return self.exact[assignment]

    def _annotated(self, assignment: Assignment) -> Module:
        space = self.space
        annotations = []
        name = mesh_to_search(self.module.root)[0]
        for number, (group, dims) in enumerate(zip(space.groups, assignment)):
            sharding = space.sharding(number, dims).with_mesh(name)
            if group.fixed is None:
                annotations += [("arg_attrs", self.inputs[member], sharding) for member in group.members]
            annotations += [
                ("res_attrs", self.outputs[output], sharding)
                for output in group.outputs
                if self.outputs[output].sharding is None
            ]
        return annotate_ports(self.module, annotations)

    def _row(self, name: str, module: Module) -> PlanRow | None:
        options = self.options
        try:
            found = cost(
                module,
                options.hardware,
                networks=options.networks,
                shape=options.shape,
                collectives=options.collectives,
            )
        except ShardyError:
            return None
        return PlanRow(name, found.step_seconds, found.peak_bytes, found.peak_bytes <= options.limit, True)

    def _plan(self) -> Plan:
        found = self._best()
        if found is None:
            best = self.explorer.best
            assignment = self.space.empty if best is None else best.assignment
            row = self._evaluate(assignment)
            if row is None:
                raise UsageError(DOING, got="a program that cannot be partitioned", needed="one that `partition` takes")
            found = row, assignment
        chosen, assignment = found
        reasons = () if self.is_interrupted else self._reasons(assignment)
        if not chosen.fits:
            self.notes += advice(self.space, assignment, chosen.bytes, self.options.limit)
        return Plan(self._summary(chosen, assignment, reasons), self.module)

    def _reasons(self, assignment: Assignment) -> tuple[Reason, ...]:
        explorer = self.explorer
        quick = explorer.found.get(assignment)
        if quick is None:
            return ()
        found = []
        for decision, without in decisions(self.space, assignment):
            if time.monotonic() > self.started + 1.1 * self.options.budget_s:
                break
            other = explorer.price(without)
            if other is not None:
                found.append(Reason(decision, other.seconds - quick.seconds, other.bytes - quick.bytes))
        return tuple(sorted(found, key=lambda reason: -reason.seconds))

    def _summary(self, chosen: PlanRow, assignment: Assignment, reasons: tuple[Reason, ...]) -> PlanSummary:
        options, explorer = self.options, self.explorer
        ended = "interruption" if self.is_interrupted else explorer.ended_by or "nothing better"
        return PlanSummary(
            hardware=options.hardware.name,
            mesh=tuple(self.mesh.axes),
            collectives=options.collectives.value,
            limit=options.limit,
            specs=tuple(self._specs(assignment)),
            chosen=PlanRow("the plan", *_figures(chosen)),
            rows=tuple(self._rows(assignment)),
            front=tuple(self._front(assignment)),
            reasons=reasons,
            candidates=len(explorer.found),
            exact=len(self.exact),
            seconds=round(time.monotonic() - self.started, 2),
            seed=options.seed,
            ended_by=ended,
            notes=tuple(self.notes),
        )

    def _specs(self, assignment: Assignment) -> Iterable[PlanSpec]:
        names = [port.name for port in (*self.inputs, *self.outputs)]
        for group, dims in zip(self.space.groups, assignment):
            ports = [("", self.inputs[member].name) for member in group.members] if group.fixed is None else []
            free = [self.outputs[place].name for place in group.outputs if self.outputs[place].sharding is None]
            axes = dims if group.fixed is None else tuple(
                tuple(axis.name for axis in dim.axes) for dim in group.fixed.dims
            )  # fmt: skip
            for is_output, members in ((False, [name for _, name in ports]), (True, free)):
                for name, count in _patterns(members, names):
                    yield PlanSpec(name, group.shape, group.element, axes, count, is_output)

    def _rows(self, assignment: Assignment) -> Iterable[PlanRow]:
        if self.given_row is not None:
            yield self.given_row
        found = []
        for name, tactic in [*self.explorer.tactics.items(), *((name, one) for one, name in self.names.items())]:
            exact, quick = self.exact.get(tactic), self.explorer.found.get(tactic)
            if exact is not None:
                found.append(PlanRow(name, *_figures(exact)))
            elif quick is not None:
                found.append(PlanRow(name, quick.seconds, quick.bytes, quick.bytes <= self.explorer.limit, False))
        yield from sorted(found, key=lambda row: (not row.is_exact, *_rank(row), row.name))

    def _front(self, assignment: Assignment) -> Iterable[PlanRow]:
        rows = [row for row in self.exact.values() if row is not None]
        least = math.inf
        for row in sorted(rows, key=lambda row: (row.seconds, row.bytes)):
            if row.bytes < least * 0.99:
                least = row.bytes
                yield row


def _rank(row: PlanRow) -> tuple[bool, float, float]:
    """What fits comes first, then what is fast; of what does not fit, what comes closest."""
    return (not row.fits, row.seconds if row.fits else row.bytes, row.bytes)


def _figures(row: PlanRow) -> tuple[float, float, bool, bool]:
    return row.seconds, row.bytes, row.fits, row.is_exact


def _patterns(members: Sequence[str], names: Sequence[str]) -> list[tuple[str, int]]:
    """The fewest names that stand for exactly these."""
    import re

    if not members:
        return []
    pattern = re.sub(r"\[\d+\]", "[*]", members[0])
    if len(members) > 1 and sorted(names[place] for place in matching_names(pattern, names)) == sorted(members):
        return [(pattern, len(members))]
    return [(name, 1) for name in members]


def _let_go(module: Module, keep: bool | Iterable[str]) -> Module:
    """The module without the shardings that are not kept."""
    if keep is True:
        return module
    ports = [("arg_attrs", port) for port in input_tensors(module.root)]
    ports += [("res_attrs", port) for port in output_tensors(module.root)]
    names = [port.name for _, port in ports]
    kept = {place for name in (() if keep is False else keep) for place in matching_names(name, names)}
    free = [(kind, port, None) for place, (kind, port) in enumerate(ports) if place not in kept and port.sharding]
    return annotate_ports(module, free)
