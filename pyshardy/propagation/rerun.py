"""A run with other annotations that computes only the phases that these annotations affect.

A value *differs* at some time if its sharding is not the one that the recorded run has at that time. Only phases that
read a value that differs are run. The values that such a phase writes differ from then on, unless it writes the
recorded shardings. All other phases are as recorded, because a visit depends only on the shardings that it reads.

Source: docs/semantics/propagation.md#running-again-after-an-edit
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import ShardyError
from pyshardy.propagation.layout import Turn, priorities_of
from pyshardy.propagation.masked_annotations import masked, restored
from pyshardy.propagation.sharding_store import ShardingStore
from pyshardy.propagation.timeline import ShardingTimeline

Changes = Mapping[int, TensorSharding | None]
LEAST_RERUN = 200
"""The number of visits after which a run over the whole program may be faster."""
PART = 4
"""A new run may make one visit for this many visits of the recorded run that changed something."""


@dataclass(frozen=True, slots=True)
class Rerun:
    """The result of a new run, compared with the recorded one.

    Attributes:
        shardings: The values whose final sharding is not the recorded one, with their shardings.
        ops: The number of visited ops.
        visits: The number of visits.
    """

    shardings: Mapping[int, TensorSharding | None]
    ops: int
    visits: int


def rerun(timeline: ShardingTimeline, changes: Changes, most_visits: int) -> Rerun | None:
    """Run again from other annotations; None if a run over the whole program is needed, or faster.

    Args:
        timeline: The recorded run.
        changes: The annotations that differ, by value; None for a removed one.
        most_visits: The largest number of visits.
    """
    shardings = list(timeline.layout.program.shardings)
    for value, sharding in changes.items():
        shardings[value] = sharding
    if timeline.layout.options.user_priorities and priorities_of(shardings) != timeline.layout.priorities:
        return None  # the sweeps are others
    if any(value in timeline.layout.program.siblings for value in changes):
        return None
    try:
        found = _Rerun(timeline, changes, most_visits)
        return found.run()
    except ShardyError:
        return None  # the run over the whole program raises the error with its place


class _Rerun(ShardingStore):
    """The state of a new run: the values that differ at the current time, and the phases to run."""

    def __init__(self, timeline: ShardingTimeline, changes: Changes, most_visits: int) -> None:
        super().__init__(timeline.layout)
        self.timeline = timeline
        self.most_visits = most_visits
        self.originals = {value: found for value, found in timeline.originals.items() if value not in changes}
        self.differing: dict[int, TensorSharding | None] = {}
        self.phase: dict[int, TensorSharding] = {}
        self.erased: set[int] = set()
        self.time = -1
        self.agenda: list[int] = []
        self.waiting: dict[int, list[int]] = {}
        self.watched: set[int] = set()
        self.stack: list[int] = []
        self.next = 0
        self.visiting = -1
        self.is_sweep = False
        self.visits = 0
        self.visited: set[int] = set()
        self._start(changes)

    def _start(self, changes: Changes) -> None:
        for value, sharding in changes.items():
            first = sharding
            if sharding is not None:
                first, is_hidden = masked(self.layout, sharding)
                if is_hidden:
                    self.originals[value] = sharding
            if first is not self.timeline.first[value]:
                self.differing[value] = first
        self.restores = {
            self.layout.width * number: turn[0]
            for number, turn in reversed(list(enumerate(self.layout.turns)))
            if turn[0] and (not number or self.layout.turns[number - 1][0] != turn[0])
        }
        for time in self.restores:
            heapq.heappush(self.agenda, time)
        self._watch_readers(self.differing)

    def run(self) -> Rerun | None:
        """Run all phases that read a value that differs."""
        while self.agenda:
            self.time = heapq.heappop(self.agenda)
            while self.agenda and self.agenda[0] == self.time:
                heapq.heappop(self.agenda)
            if not self._run_phase():
                return None
            self._compare()
        last = self.timeline.last
        found = {value: sharding for value, sharding in self.differing.items() if sharding is not last[value]}
        return Rerun(found, len(self.visited), self.visits)

    # The agenda

    def _watch_readers(self, values: Mapping[int, TensorSharding | None]) -> None:
        for value in values:
            for op in self.layout.readers(value):
                if op not in self.watched:
                    self.watched.add(op)
                    self._schedule(op)

    def _schedule(self, op: int) -> None:
        """Put the next time at which an op may be visited on the agenda."""
        time = min(self._next_turn(op), self.timeline.next_notified(op, self.time), self._next_woken(op))
        if time < self.layout.end and time <= self._end_of(op):
            heapq.heappush(self.agenda, time)
            self.waiting.setdefault(time, []).append(op)
        else:
            self.watched.discard(op)

    def _next_turn(self, op: int) -> int:
        layout = self.layout
        slots = [layout.sweep_of(op)]
        if op >= layout.count:
            number = op - layout.count
            slots = [1 + number, layout.sweep_of(layout.count) + number]
        start = max(self.time, 0) // layout.width * layout.width
        times = [start + slot + further for further in (0, layout.width) for slot in slots]
        return min(time for time in times if time > self.time)

    def _next_woken(self, op: int) -> int:
        """The next time at which an op is visited because another is erased; `end` if there is none."""
        woken = self.layout.erasures.woken.get(op, ())
        times = [time for turn in woken if (time := self.layout.sweep_of(turn)) > self.time]
        return min(times, default=self.layout.end)

    def _end_of(self, op: int) -> int:
        """The time at which an op is erased; `end` if it never is."""
        turn = self.layout.erasures.turns.get(op)
        return self.layout.end if turn is None else self.layout.sweep_of(turn)

    def _differs_at(self, op: int) -> bool:
        """Whether an op may read or write a value that differs."""
        return any(op in self.layout.readers(value) for value in self._near(op))

    def _near(self, op: int) -> list[int]:
        """The values of an op that differ; all that differ if some values are written together."""
        layout, differing = self.layout, self.differing
        found = [value for value in layout.tensors[op] if value in differing]
        if not found and (layout.group_of or layout.program.siblings):
            return list(differing)
        return found

    # One phase

    def _run_phase(self) -> bool:
        """Run the phase of this time; return whether the new run may go on."""
        layout = self.layout
        number, slot = divmod(self.time, layout.width)
        turn = layout.turns[number]
        self.phase, self.erased = {}, set()
        sweep = slot - 1 - layout.main_count
        if slot == 0:
            self._restore(self.restores[self.time])
        elif 0 <= sweep < layout.count:
            self.is_sweep, self.next = True, sweep + 1
            self._visit(sweep, turn)
            while self.stack:
                self._visit(self.stack.pop(), turn)
                if self.visits > self.most_visits:
                    return False
        else:
            self.is_sweep = False
            self._visit(layout.count + (slot - 1 if sweep < 0 else sweep - layout.count), turn)
        return self.visits <= self.most_visits

    def _restore(self, priority: int) -> None:
        for value in sorted(self.originals):
            new = restored(self.get(value), self.originals[value], priority)
            if new is not None:
                self.set(value, new)

    def _visit(self, op: int, turn: Turn) -> None:
        if op in self.layout.erasures.turns:
            if self._is_erased(op):
                return
            if self._is_dead(op):
                self._erase(op)
                return
        step = self.layout.step(op, turn)
        if step is None or self.layout.waits(op, turn, self._is_erased):
            return
        self.visits += 1
        self.visited.add(op)
        updates = self.layout.outcome(op, step, self.current(op))
        if updates:
            self.visiting = op
            self.write(op, updates)
            self.visiting = -1

    # Dead code

    def _is_erased(self, op: int) -> bool:
        time = self._end_of(op)
        return time < self.time or op in self.erased

    def _is_dead(self, op: int) -> bool:
        """Whether an op is erased in this phase, now that nothing uses it."""
        program = self.layout.program
        users = (user for value in program.results[op] for user in program.users[value])
        return self._end_of(op) == self.time and all(self._is_erased(user) for user in users)

    def _erase(self, op: int) -> None:
        """Erase an op, inner ops first, and schedule the ops that computed its operands."""
        erasures = self.layout.erasures
        for inner in erasures.inner(op):
            if not self._is_erased(inner):
                self._erase(inner)
        self.erased.add(op)
        for owner in erasures.visited_after(op, self._is_erased):
            self._push(owner)

    # The shardings

    def get(self, value: int) -> TensorSharding | None:  # noqa: D102
        if value in self.phase:
            return self.phase[value]
        if value in self.differing:
            return self.differing[value]
        return self.timeline.before(value, self.time)

    def put(self, value: int, sharding: TensorSharding) -> None:  # noqa: D102
        self.phase[value] = sharding

    def schedule_readers(self, value: int) -> None:  # noqa: D102
        if not self.is_sweep:
            return
        for op in self.layout.program.to_revisit(value):
            if op >= 0:
                self._push(op)

    def _push(self, op: int) -> None:
        """Visit an op next, unless the sweep has not reached it."""
        if op < self.next and op != self.visiting and op not in self.stack:
            self.stack.append(op)

    def _compare(self) -> None:
        """Record the values that differ after this phase, and schedule the ops that read them."""
        timeline, time = self.timeline, self.time
        new: dict[int, TensorSharding | None] = {}
        for value in {**dict.fromkeys(timeline.written.get(time, ())), **dict.fromkeys(self.phase)}:
            now = self.get(value)
            if now is timeline.after(value, time):
                self.differing.pop(value, None)
            else:
                new[value] = now
        self.differing.update(new)
        for op in self.waiting.pop(time, ()):
            if self._differs_at(op):
                self._schedule(op)
            else:
                self.watched.discard(op)
        self._watch_readers(new)
