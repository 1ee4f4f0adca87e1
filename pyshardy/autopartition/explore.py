"""The search itself: a portfolio of experts' tactics, a beam over far-reaching steps, a local search that breaks
parts of what it found and repairs them. Deterministic by its seed, as far as time does not end it.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from pyshardy.autopartition.moves import all_moves, put, take
from pyshardy.autopartition.pricing import Pricer, Quick
from pyshardy.autopartition.space import Assignment, Space
from pyshardy.autopartition.symmetry import Symmetry
from pyshardy.autopartition.tactics import tactics
from pyshardy.errors import ShardyError

_BEAM: Final = 3
_PENALTY: Final = 4.0
_LEAST_TACTICS: Final = 24
"""So many tactics are looked at even where there are few candidates; else they are half of these at most."""
_LEAST_GAIN: Final = 1e-3
_BAD: Final = 2.5
"""A step is not looked at that seems so much slower; quick estimates are off by half and by a half more."""


class Found(NamedTuple):
    """A candidate with its quick estimate."""

    assignment: Assignment
    quick: Quick


class Limits(NamedTuple):
    """When a search ends.

    Attributes:
        until: When, by `time.monotonic`.
        most: After so many candidates.
        seed: Of what is chosen at random.
    """

    until: float
    most: int
    seed: int


Watch = Callable[[int, Found, str], None]
"""Called with the number of candidates, the best so far, and what is going on, whenever a better one is found."""


Price = Callable[[Assignment], "Quick | None"]
"""What an assignment costs; None if it cannot be propagated."""


class _Quickly:
    """Quick estimates."""

    def __init__(self, space: Space) -> None:
        self.space, self.pricer = space, Pricer(space.problem, space.tied)

    def __call__(self, assignment: Assignment) -> Quick | None:
        try:
            return self.pricer.price(self.space.shardings(assignment), self.space.base_bytes(assignment))
        except ShardyError:
            return None


def score(quick: Quick, limit: float) -> tuple[float, float]:
    """What is to be small: time, more of it where memory does not suffice.

    Args:
        quick: An estimate.
        limit: Bytes that a device may use.
    """
    over = max(0.0, quick.bytes / limit - 1.0)
    return (quick.seconds * (1.0 + _PENALTY * over) + (1e3 * over if over else 0.0), quick.bytes)


class Explorer:
    """A search over the assignments of a space.

    Args:
        space: The decisions.
        limits: When it ends.
        watch: Who is told of what is better.
        price: What candidates are priced by; by default the quick estimate.
        symmetry: That of another search over the same space, so that both look at the same of what is alike.

    Attributes:
        found: All candidates that were priced; of those that differ by axes in each other's place alone, the first.
        symmetry: Knows the axes that may change places.
        ended_by: "" while there is time and there are candidates left; else "time" or "candidates".
    """

    def __init__(
        self,
        space: Space,
        limits: Limits,
        watch: Watch | None = None,
        price: Price | None = None,
        symmetry: Symmetry | None = None,
    ) -> None:
        self.space, self.limits, self.watch = space, limits, watch
        self.price: Price = _Quickly(space) if price is None else price
        self.found: dict[Assignment, Quick | None] = {}
        self.symmetry = symmetry or Symmetry(space)
        self.limit = space.problem.limit
        self.best: Found | None = None
        self.ended_by = ""
        self.tactics: dict[str, Assignment] = {}
        self._random = random.Random(limits.seed)
        self._at = "first candidates"

    def evaluate(self, assignment: Assignment) -> Quick | None:
        """The quick estimate of an assignment; None if it does not propagate, or the search has ended."""
        assignment = self.symmetry.first(assignment)
        if assignment in self.found:
            return self.found[assignment]
        if self.is_over():
            return None
        quick = self.found[assignment] = self.price(assignment)
        if quick is not None and (self.best is None or self.score(quick) < self.score(self.best.quick)):
            self.best = Found(assignment, quick)
            if self.watch is not None:
                self.watch(len(self.found), self.best, self._at)
        return quick

    def is_over(self) -> bool:
        """Whether time or candidates have run out; noted as what ended the search."""
        if not self.ended_by:
            if time.monotonic() > self.limits.until:
                self.ended_by = "time"
            elif len(self.found) >= self.limits.most:
                self.ended_by = "candidates"
        return bool(self.ended_by)

    def score(self, quick: Quick) -> tuple[float, float]:
        """What is to be small: time, more of it where memory does not suffice."""
        return score(quick, self.limit)

    def run(self) -> None:
        """Search until nothing better is found, or it is over."""
        self.seed()
        self.beam()
        self.improve()

    def seed(self) -> None:
        """Price what experts do."""
        self._at = "what experts do"
        self.tactics = tactics(self.space)
        most = max(_LEAST_TACTICS, self.limits.most // 2)
        for assignment in list(self.tactics.values())[:most]:
            self.evaluate(assignment)

    def look_at(self, at: str, assignments: Iterable[Assignment]) -> None:
        """Price some assignments.

        Args:
            at: What they are, for who watches.
            assignments: The assignments.
        """
        self._at = at
        self._try(assignments)

    def climb(self, quick: Mapping[Assignment, Quick | None]) -> None:
        """Go from the best to what is one step from it and better, until nothing is; then try several steps at once.

        Args:
            quick: Other estimates; steps come in the order of these, and those without one after them.
        """
        self._at = "what is near to the best"
        expanded: set[Assignment] = set()
        while self.best is not None and self.best.assignment not in expanded and not self.is_over():
            best = self.best
            expanded.add(best.assignment)
            for step in self._promising(best.assignment, quick):
                found = self.evaluate(step)
                if self.is_over() or (found is not None and self._is_better(Found(step, found), best)):
                    break
        self.improve()

    def _promising(self, assignment: Assignment, quick: Mapping[Assignment, Quick | None]) -> list[Assignment]:
        """The steps from an assignment, without those that seem bad."""
        own = quick.get(assignment)
        worst = math.inf if own is None else _BAD * own.seconds
        known, others = [], []
        for step in dict.fromkeys(map(self.symmetry.first, all_moves(self.space, assignment))):
            found = quick.get(step)
            if step in self.found:
                continue
            if found is None:
                others.append(step)
            elif found.seconds < worst:
                known.append((found.seconds, step))
        return [step for _, step in sorted(known)] + others

    def beam(self) -> None:
        """Take all steps from the best few, again and again."""
        self._at = "beam"
        front = self.ranked()[:_BEAM]
        expanded: set[Assignment] = set()
        while front and not self.is_over():
            before = self.best
            for one in front:
                if one.assignment not in expanded:
                    expanded.add(one.assignment)
                    self._try(all_moves(self.space, one.assignment))
            front = [one for one in self.ranked()[:_BEAM] if one.assignment not in expanded]
            if before is not None and self.best is not None and not self._is_better(self.best, before):
                break

    def improve(self) -> None:
        """Change several decisions at random, go downhill from there, keep what is better; give up when it never is."""
        self._at = "local search"
        best = self.best
        failures = 0
        while best is not None and failures < 4 + len(self.space.groups) // 4 and not self.is_over():
            current = self._descend(self._shaken(best.assignment))
            if self._is_better(current, best):
                best, failures = current, 0
            else:
                failures += 1

    def _descend(self, assignment: Assignment | None) -> Found | None:
        quick = None if assignment is None else self.evaluate(assignment)
        if assignment is None or quick is None:
            return None
        current = Found(assignment, quick)
        steps = list(dict.fromkeys(all_moves(self.space, assignment)))
        self._random.shuffle(steps)
        for tries, step in enumerate(steps):
            found = self.evaluate(step)
            if found is not None and self._is_better(Found(step, found), current):
                return self._descend(step)
            if tries >= 24 or self.is_over():
                break
        return current

    def _shaken(self, assignment: Assignment) -> Assignment:
        space = self.space
        free = [number for number in range(len(space.groups)) if space.is_free(number) and space.groups[number].shape]
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
            if self.is_over():
                return
            self.evaluate(step)

    def _is_better(self, one: Found | None, other: Found | None) -> bool:
        if one is None or other is None:
            return one is not None
        return self.score(one.quick)[0] < self.score(other.quick)[0] * (1 - _LEAST_GAIN)

    def ranked(self) -> list[Found]:
        """All candidates, the best first."""
        found = [Found(assignment, quick) for assignment, quick in self.found.items() if quick is not None]
        return sorted(found, key=lambda one: (self.score(one.quick), one.assignment))

    def front(self) -> Iterator[Found]:
        """The candidates that no other beats in time and memory at once, the fastest first."""
        least = float("inf")
        for one in sorted(
            (Found(assignment, quick) for assignment, quick in self.found.items() if quick is not None),
            key=lambda one: (one.quick.seconds, one.quick.bytes, one.assignment),
        ):
            if one.quick.bytes < least * (1 - 0.01):
                least = one.quick.bytes
                yield one
