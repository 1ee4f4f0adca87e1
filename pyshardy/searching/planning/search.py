"""One search over one mesh: the order of estimates, and the plan."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest

from pyshardy.core.axes import Dims
from pyshardy.costing.step_cost import StepCost
from pyshardy.report.plan import THE_PLAN, PlanRow
from pyshardy.results.plan import Plan
from pyshardy.searching.autopartition.explore import BAD, Candidate, Limits, RoughEstimates
from pyshardy.searching.autopartition.registry import (
    Answer,
    our_partitioner,
    registered_partitioner,
    run_partitioner,
)
from pyshardy.searching.autopartition.space import Assignment
from pyshardy.searching.autopartition.tactics import without_storing
from pyshardy.searching.planning.compiled import AS_GIVEN, MOST_EXPERTS, MOST_RIVALS, Rival, confirmed
from pyshardy.searching.planning.constraining import ConstrainedAssignment, Constraining
from pyshardy.searching.planning.estimates import step_cost_of
from pyshardy.searching.planning.given import given_assignment
from pyshardy.searching.planning.nearest import expert_answers
from pyshardy.searching.planning.proof import MOST_TRIED, all_assignments
from pyshardy.searching.planning.settling import settle, usual
from pyshardy.searching.planning.state import WITHOUT_CONSTRAINTS, SearchState
from pyshardy.searching.planning.telling import plan_of

_PATIENCE = 32
"""The exact estimates of promising candidates end after so many that are not better."""
_SHARE_OF_KNOWN = 0.5
"""The share of the time for exact estimates that candidates with rough ones get; their neighbours get the rest."""
_TRIES, _LEAST_TRIES = 10, 24
"""The search of constraints prices one in `_TRIES` candidates, but at least `_LEAST_TRIES`."""
_LEAST_FOR_CONSTRAINTS = 0.15
"""The share of the time that constraints get if they can be priced at all."""
_MOST_EXPERTS = 10
"""The number of experts' tactics that are constrained too."""
_BY_USER = "what the registered partitioner found"
_MOST_TRIES = 8
"""The number of candidates that are partitioned if the first ones do not fit into memory."""


class Search(SearchState):
    """One search over one mesh."""

    def look(self) -> StepCost | None:
        """The estimate of the best tactic, an exact one if that can be made; None if none propagates."""
        self.explorer.seed()
        best = self.explorer.best
        return None if best is None else self.checker.evaluate(best.assignment) or best.cost

    def run(self) -> Plan:
        """Search, and return the best plan."""
        try:
            self.explorer.seed()
            own = self._partitioned_by_user() if registered_partitioner() is not our_partitioner else None
            if own is None:
                self._learn()
                our_partitioner(self.task)
            self.as_given = given_assignment(self)
            self._check(None if own is None else own.assignment)
            self._finish(None if own is None else own.assignment)
            self._constrain(own)
            settle(self)
            self._confirm()
        except KeyboardInterrupt:
            self.is_interrupted = True
            self.notes.append("the search was interrupted: this is the best plan so far")
        return plan_of(self)

    def _partitioned_by_user(self) -> Answer:
        found = run_partitioner(self.task)
        self.explorer.evaluate(found.assignment)
        if not found.constraints:
            self.names[found.assignment] = _BY_USER
        return found

    def _learn(self) -> None:
        """Compare the rough estimate of memory with the exact one, for a few tactics, and correct the limit."""
        ratios = []
        for found in self.explorer.ranked()[:2]:
            exact = self.checker.evaluate(found.assignment)
            if exact is not None and found.cost.bytes:
                ratios.append(exact.bytes / found.cost.bytes)
        if ratios:
            self.explorer.limit = self.options.limit / min(4.0, max(1.0, *ratios))
            best = self.explorer.ranked()
            self.explorer.best = best[0] if best else None

    def _check(self, own: Assignment | None) -> None:
        """Price exactly the candidates with the best rough estimates and the tactics of experts, then neighbours."""
        ranked = self.explorer.ranked()
        best = [found.assignment for found in ranked]
        tactics = set(self.explorer.tactics.values())
        near = [found.assignment for found in ranked if self._is_near(found, ranked[0])]
        experts = [assignment for assignment in near if assignment in tactics]
        wanted = [one for one in (own, self.as_given) if one is not None]
        for one, other in zip_longest(best[:12], experts):
            wanted += [assignment for assignment in (one, other) if assignment is not None]
        known = list(dict.fromkeys(wanted))
        is_cut = self.checker.look_at("exact estimates", known, _PATIENCE, _SHARE_OF_KNOWN)
        limits = self.checker.limits
        rough = RoughEstimates(lambda one: self.rough(Answer(one, {})), limits.most, self.explorer.found, limits.until)
        self.checker.climb(rough)
        if is_cut:
            self.checker.look_at("exact estimates", known, _PATIENCE)
        if self.estimates.is_like_whole and self.prices is not None:
            self.all = all_assignments(self.space, min(MOST_TRIED, self.options.candidates // 2))
            if self.all:
                self.checker.allow(len(self.all))
            self.checker.look_at("all shardings of inputs", self.all)

    def _is_near(self, found: Candidate, best: Candidate) -> bool:
        """Whether a candidate may be better than the best by rough estimates, as far as these err."""
        most = BAD * max(self.options.limit, best.cost.bytes)
        return found.cost.seconds < BAD * best.cost.seconds and found.cost.bytes < most

    def _finish(self, own: Assignment | None) -> None:
        """Partition the best candidate. If its estimate was not right, partition the next ones while there is time."""
        ranked = [found.assignment for found in self.checker.ranked()] or [self.space.empty]
        tactics = set(self.explorer.tactics.values())
        experts = [assignment for assignment in ranked if assignment in tactics][:2]
        self.whole(ranked[0])
        self.estimates.learn(ranked[0])
        others = [] if self.estimates.is_like_whole else [*experts, *ranked[1:3], *([own] if own else [])]
        for assignment in dict.fromkeys([*others, *ranked[1:_MOST_TRIES]]):
            best = self.estimates.best()
            is_done = assignment not in others and best is not None and best[0].fits
            row = self.estimates.row_of("", assignment)
            if self.estimates.is_like_whole and row is not None and not row.fits:
                break  # it would not fit either
            if is_done or time.monotonic() + self.whole_seconds > self.started + self.options.budget_s:
                break
            self.whole(assignment)

    def _constrain(self, own: Answer | None) -> None:
        """Look for constraints that make the plan, or an expert's tactic, better than the plan; partition it then.

        What a registered partitioner found with constraints is partitioned in any case.
        """
        best = self.estimates.best()
        until, now = self.explained_by - self.whole_seconds, time.monotonic()
        if self.reserved(2 * self.whole_seconds):  # those of experts are tried also if the search so far took longer
            until = max(until, now + _LEAST_FOR_CONSTRAINTS * self.options.budget_s)
        limits = Limits(until, max(_LEAST_TRIES, self.options.candidates // _TRIES), self.options.seed)
        has_own = own is not None and bool(own.constraints)
        if best is None or not (has_own or (self._may_constrain and now <= until)):
            return
        constraining = Constraining(
            self.module, self.mesh_name, self.values, self.space, self.task.between, self.plain, self.layered,
            self.borders, self.annotated, limits,
        )  # fmt: skip
        self.constraining = constraining
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
        if self.objective.is_better(row, best):
            found = ConstrainedAssignment(own, step_cost_of(row))
            self.constrained = row, found

    def _search_constraints(
        self, own: Answer | None, constraining: Constraining, best: tuple[PlanRow, Assignment]
    ) -> None:
        starts = [Answer(best[1], {})] + ([] if own is None or not own.constraints else [own])
        starts += [] if self.as_given is None else [Answer(self.as_given, {})]
        found = constraining.run(starts, self._experts())
        self.tries, self.experts = constraining.tries, constraining.experts
        row = None if found is None else self.options.row("", constraining.module_of(found.answer))
        known = best[0] if self.constrained is None else self.constrained[0]
        if found is not None and row is not None and self.objective.gains(row, known):
            self.constrained = row, found

    def _experts(self) -> list[Assignment]:
        """The tactics of experts to which constraints are added: the best ones, and the best that need constraints.

        Weights stored along an axis of the batch may cost much without constraints. So such a tactic gets the time of
        the same tactic that stores nothing, if that is less. Constraints may also save memory: one that needs twice of
        what there is counts as if it took twice as long.
        """
        tactics = self.explorer.tactics
        found = {name: self.estimates.row_of(name, assignment) for name, assignment in tactics.items()}
        rows = {name: row for name, row in found.items() if row is not None}
        seconds = {name: row.seconds for name, row in rows.items()}
        lacking = {name: max(1.0, row.bytes / self.options.limit) for name, row in rows.items()}
        bases = {name: seconds.get(base, math.inf) for name in seconds if (base := without_storing(name)) != name}
        ranked = sorted(rows, key=lambda name: seconds[name] * lacking[name])
        stored = sorted(bases, key=lambda name: min(bases[name], seconds[name]) * lacking[name])
        names = [name for pair in zip_longest(ranked, stored) for name in pair if name is not None]
        return list(dict.fromkeys(tactics[name] for name in names))[:_MOST_EXPERTS]

    def _confirm(self) -> None:
        """Ask the compiler about the best plans and the given program; the plan is the one with its best program."""
        if not self.options.compiler or self.estimates.best() is None:
            return
        if self.given_row is None or not self.given_row.sent_bytes:  # was not partitioned yet
            self.given_row = self.options.row(AS_GIVEN, self.given)
        rivals = list(self._rivals())
        if self.given_row is not None and self.may_be_given:
            rivals.append(Rival(self.given_row, self.given))
        self.confirmed = confirmed(rivals, self.options, self.say)
        self.notes += self.confirmed.notes

    def _rivals(self) -> Iterator[Rival]:
        """The best plans: with constraints, without, those of experts with either, and the next ones by estimates."""
        best = self.estimates.best()
        assert best is not None
        plain = Answer(best[1], {})
        names = {} if self.constrained is None else {_key(self.constrained[1].answer): THE_PLAN}
        names.setdefault(_key(plain), WITHOUT_CONSTRAINTS if self.constrained is not None else THE_PLAN)
        answers = [plain] if self.constrained is None else [self.constrained[1].answer, plain]
        experts = sorted(expert_answers(self), key=lambda one: self.objective.rank(one.row))
        answers += [one.answer for one in experts[:MOST_EXPERTS]]
        for one in experts:
            names.setdefault(_key(one.answer), one.row.name)
        answers += [Answer(found.assignment, {}) for found in self.checker.ranked()]
        asked: set[object] = set()
        for answer in list({_key(answer): answer for answer in answers}.values())[:MOST_RIVALS]:
            name = names.get(_key(answer), "the next best plan by estimates")
            answer = answer if name == THE_PLAN else usual(self, answer)
            if _key(answer) in asked:
                continue
            asked.add(_key(answer))
            rival = self._rival(name, answer)
            if rival is not None:
                yield rival

    def _rival(self, name: str, answer: Answer) -> Rival | None:
        """A plan for the compiler; None if it cannot be partitioned."""
        if not answer.constraints:
            row, module, found = self.whole(answer.assignment), self.annotated(answer.assignment), None
        else:
            assert self.constraining is not None
            module = self.constraining.module_of(answer)
            row = self.options.row(name, module)
            found = None if row is None else ConstrainedAssignment(answer, step_cost_of(row))
        return None if row is None else Rival(replace(row, name=name), module, answer.assignment, found)


def _key(answer: Answer) -> tuple[Assignment, tuple[tuple[int, Dims], ...]]:
    return answer.assignment, tuple(sorted(answer.constraints.items()))
