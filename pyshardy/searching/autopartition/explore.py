"""The search itself: experts' tactics first, then a beam search, then a local search with random restarts.

The same seed gives the same result, unless the search runs out of time.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from types import MappingProxyType
from typing import Final, NamedTuple

from pyshardy.costing.step_cost import StepCost
from pyshardy.errors import ShardyError
from pyshardy.searching.autopartition.moves import all_moves, put, take
from pyshardy.searching.autopartition.pricing import RoughPricer
from pyshardy.searching.autopartition.space import Assignment, Space
from pyshardy.searching.autopartition.symmetry import Symmetry
from pyshardy.searching.autopartition.tactics import tactics

_BEAM: Final = 3
_LEAST_TACTICS: Final = 24
"""The number of tactics that are priced even if few candidates are allowed; else at most half of the candidates are."""
_LEAST_GAIN: Final = 1e-3
_CLEAR_GAIN: Final = 0.01
"""By this much a neighbour must be better to be taken before the other ones are tried."""
BAD: Final = 2.5
"""A candidate gets no exact estimate if its rough time is this many times that of the best one. Rough estimates err by
a factor of 1.5 in both directions."""
_PATIENCE: Final = 48
"""The number of neighbours that are priced exactly, the most promising first; better ones were among the first."""
_ROUGH_PATIENCE: Final = 128
"""A phase of the search ends after so many rough estimates of candidates of which none was better."""


class Candidate(NamedTuple):
    """A candidate with its estimate."""

    assignment: Assignment
    cost: StepCost


class Limits(NamedTuple):
    """The limits of a search, and its seed.

    Attributes:
        until: The time at which it ends, as `time.monotonic` counts.
        most: The largest number of candidates.
        seed: The seed of random choices.
    """

    until: float
    most: int
    seed: int


Watch = Callable[[int, Candidate, str], None]
"""Called for every better candidate: with the number of candidates, the best one, and the phase of the search."""


PriceFunction = Callable[[Assignment], "StepCost | None"]
"""The estimate of an assignment; None if propagation refuses it."""


class RoughEstimates(Mapping[Assignment, "StepCost | None"]):
    """Rough estimates that are made when they are asked for, up to a number of new ones and until a time.

    Args:
        price: Makes the estimate of an assignment.
        most: The largest number of new ones.
        known: Those that are known.
        until: The time, as `time.monotonic` counts.
    """

    def __init__(
        self,
        price: PriceFunction,
        most: int,
        known: Mapping[Assignment, StepCost | None] = MappingProxyType({}),
        until: float = math.inf,
    ) -> None:
        self._price, self._found, self._most, self._until = price, dict(known), len(known) + most, until

    def __getitem__(self, assignment: Assignment) -> StepCost | None:
        if assignment not in self._found:
            if len(self._found) >= self._most or time.monotonic() > self._until:
                raise KeyError(assignment)
            self._found[assignment] = self._price(assignment)
        return self._found[assignment]

    def __iter__(self) -> Iterator[Assignment]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class _RoughPrice:
    """Rough estimates of assignments."""

    def __init__(self, space: Space) -> None:
        self.space, self.pricer = space, RoughPricer(space.problem, space.tied)

    def __call__(self, assignment: Assignment) -> StepCost | None:
        try:
            return self.pricer.price(self.space.shardings(assignment), self.space.base_bytes(assignment))
        except ShardyError:
            return None


class Explorer:
    """A search over the assignments of a space.

    Args:
        space: The decisions.
        limits: When it ends.
        watch: Called for every better candidate.
        price: The estimate of candidates; by default the rough one.
        symmetry: The symmetry of another search over the same space. Both then choose the same among assignments that
            differ only by exchanged axes.

    Attributes:
        found: All candidates that were priced, with their estimates; one of those that differ only by exchanged axes.
        symmetry: The axes that can be exchanged.
        best: The best candidate so far.
        ended_by: What ended the search: "time" or "candidates"; "" while both last.
        tactics: The assignments of experts, by name.
    """

    def __init__(
        self,
        space: Space,
        limits: Limits,
        watch: Watch | None = None,
        price: PriceFunction | None = None,
        symmetry: Symmetry | None = None,
    ) -> None:
        self.space, self.limits, self.watch = space, limits, watch
        self.price: PriceFunction = _RoughPrice(space) if price is None else price
        self.found: dict[Assignment, StepCost | None] = {}
        self.symmetry = symmetry or Symmetry(space)
        self.objective = space.problem.objective
        self.limit = self.objective.limit
        self.best: Candidate | None = None
        self.ended_by = ""
        self.tactics: dict[str, Assignment] = {}
        self._random = random.Random(limits.seed)
        self._at = "first candidates"
        self._gained, self._patience = 0, limits.most

    def evaluate(self, assignment: Assignment) -> StepCost | None:
        """The estimate of an assignment; None if propagation refuses it, or the search has ended."""
        assignment = self.symmetry.first(assignment)
        if assignment in self.found:
            return self.found[assignment]
        if self.is_over():
            return None
        cost = self.found[assignment] = self.price(assignment)
        if cost is not None and (self.best is None or self.score(cost) < self.score(self.best.cost)):
            found = Candidate(assignment, cost)
            if self._is_better(found, self.best):
                self._gained = len(self.found)
            self.best = found
            if self.watch is not None:
                self.watch(len(self.found), self.best, self._at)
        return cost

    def is_over(self) -> bool:
        """Whether time or candidates have run out; sets `ended_by`."""
        if not self.ended_by:
            if time.monotonic() > self.limits.until:
                self.ended_by = "time"
            elif len(self.found) >= self.limits.most:
                self.ended_by = "candidates"
        return bool(self.ended_by)

    def _start(self, at: str, patience: int) -> None:
        """Begin a phase of the search, which ends after so many candidates that are not better."""
        self._at, self._gained, self._patience = at, len(self.found), patience

    def _is_stuck(self) -> bool:
        """Whether the search is over, or its phase."""
        return self.is_over() or len(self.found) - self._gained >= self._patience

    def allow(self, more: int) -> None:
        """Allow more candidates than the limit, unless time has run out."""
        if self.ended_by != "time":
            self.limits, self.ended_by = (
                self.limits._replace(most=max(self.limits.most, len(self.found) + more + 1)),
                "",
            )

    def score(self, cost: StepCost) -> tuple[float, float]:
        """The quantity to minimize, by the objective of the problem."""
        return self.objective.score(cost, self.limit)

    def run(self) -> None:
        """Search until no better candidate is found, or the search is over."""
        self.seed()
        self.beam()
        self.improve()

    def seed(self) -> None:
        """Price the tactics of experts."""
        self._at = "tactics of experts"
        self.tactics = tactics(self.space)
        most = max(_LEAST_TACTICS, self.limits.most // 2)
        for assignment in list(self.tactics.values())[:most]:
            self.evaluate(assignment)

    def look_at(
        self, at: str, assignments: Iterable[Assignment], patience: int | None = None, share: float = 1.0
    ) -> bool:
        """Price some assignments; return whether a share of the time ended it.

        Args:
            at: The phase of the search, for `watch`.
            assignments: The assignments.
            patience: After how many in a row that are not better it ends; by default, all are priced.
            share: The share of the time that is left after which it ends, too.
        """
        self._start(at, self.limits.most if patience is None else patience)
        now = time.monotonic()
        until = now + share * (self.limits.until - now)
        self._try(takewhile(lambda _: time.monotonic() <= until, assignments))
        return time.monotonic() > until

    def climb(self, rough: Mapping[Assignment, StepCost | None]) -> None:
        """Move from the best candidate to better neighbours while some of the most promising are better.

        Args:
            rough: Rough estimates. Neighbors are tried in the order of these, those without one last.
        """
        self._at = "neighbours of the best"
        expanded: set[Assignment] = set()
        while self.best is not None and self.best.assignment not in expanded and not self.is_over():
            best = self.best
            expanded.add(best.assignment)
            for step in self._promising(best.assignment, rough)[:_PATIENCE]:
                found = self.evaluate(step)
                if self.is_over() or (found is not None and self._is_better(Candidate(step, found), best, _CLEAR_GAIN)):
                    break

    def _promising(self, assignment: Assignment, rough: Mapping[Assignment, StepCost | None]) -> list[Assignment]:
        """The neighbours of an assignment, without those whose rough estimate is bad."""
        own = rough.get(assignment)
        worst = math.inf if own is None else BAD * own.seconds
        known, others = [], []
        for step in dict.fromkeys(map(self.symmetry.first, all_moves(self.space, assignment))):
            found = rough.get(step)
            if step in self.found:
                continue
            if found is None:
                others.append(step)
            elif found.seconds < worst:
                known.append((found.seconds, step))
        return [step for _, step in sorted(known)] + others

    def beam(self) -> None:
        """Price all neighbours of the best few candidates, and repeat while this finds better ones."""
        self._start("beam", _ROUGH_PATIENCE)
        front = self.ranked()[:_BEAM]
        expanded: set[Assignment] = set()
        while front and not self._is_stuck():
            before = self.best
            for one in front:
                if one.assignment not in expanded:
                    expanded.add(one.assignment)
                    self._try(all_moves(self.space, one.assignment))
            front = [one for one in self.ranked()[:_BEAM] if one.assignment not in expanded]
            if before is not None and self.best is not None and not self._is_better(self.best, before):
                break

    def improve(self) -> None:
        """Change several decisions at random and descend from there; end after several rounds without gain."""
        self._start("local search", _ROUGH_PATIENCE)
        best = self.best
        failures = 0
        while best is not None and failures < 4 + len(self.space.groups) // 4 and not self._is_stuck():
            current = self._descend(self._perturbed(best.assignment))
            if self._is_better(current, best):
                best, failures = current, 0
            else:
                failures += 1

    def _descend(self, assignment: Assignment | None) -> Candidate | None:
        """The candidate that moves to better neighbours, in random order, lead to."""
        cost = None if assignment is None else self.evaluate(assignment)
        if assignment is None or cost is None:
            return None
        current = Candidate(assignment, cost)
        steps = list(dict.fromkeys(all_moves(self.space, assignment)))
        self._random.shuffle(steps)
        for tries, step in enumerate(steps):
            found = self.evaluate(step)
            if found is not None and self._is_better(Candidate(step, found), current):
                return self._descend(step)
            if tries >= 24 or self._is_stuck():
                break
        return current

    def _perturbed(self, assignment: Assignment) -> Assignment:
        """The assignment after two to four random moves."""
        space = self.space
        free = [number for number, group in enumerate(space.groups) if group.is_free and group.shape]
        if not free or not space.axes:
            return assignment
        for _ in range(self._random.randint(2, 4)):
            group = self._random.choice(free)
            axis = self._random.choice(space.axes)[0]
            dim = self._random.randrange(len(space.groups[group].shape) + 1)
            number = space.class_of.get((group, dim))
            if number is None:
                assignment = take(space, assignment, axis, [group])
            elif self._random.random() < 0.5:
                assignment = put(space, assignment, axis, space.classes[number].places)
            else:
                assignment = put(space, assignment, axis, [(group, dim)])
        return assignment

    def _try(self, steps: Iterable[Assignment]) -> None:
        for step in steps:
            if self._is_stuck():
                return
            self.evaluate(step)

    def _is_better(self, one: Candidate | None, other: Candidate | None, gain: float = _LEAST_GAIN) -> bool:
        if one is None or other is None:
            return one is not None
        return self.score(one.cost)[0] < self.score(other.cost)[0] * (1 - gain)

    def ranked(self) -> list[Candidate]:
        """All candidates, the best first."""
        found = [Candidate(assignment, cost) for assignment, cost in self.found.items() if cost is not None]
        return sorted(found, key=lambda one: (self.score(one.cost), one.assignment))

    def front(self) -> Iterator[Candidate]:
        """The Pareto front: the candidates that no other beats in both time and memory, the fastest first."""
        least = float("inf")
        for one in sorted(
            (Candidate(assignment, cost) for assignment, cost in self.found.items() if cost is not None),
            key=lambda one: (one.cost.seconds, one.cost.bytes, one.assignment),
        ):
            if one.cost.bytes < least * (1 - 0.01):
                least = one.cost.bytes
                yield one
