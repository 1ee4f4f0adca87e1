"""The shardings that a run of propagation wrote, by time, for comparison with a run with other annotations.

A run is a sequence of *phases*. A phase is the visit of one op in its turn, followed by the visits that it triggers at
once. The time of a phase is the same in every run over one program, whatever the annotations.

Source: docs/semantics/propagation.md#running-again-after-an-edit
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import cached_property

from pyshardy.core.sharding import TensorSharding
from pyshardy.propagation.layout import Layout
from pyshardy.propagation.masked_annotations import masked_all, restored
from pyshardy.propagation.program import NO_VALUE
from pyshardy.propagation.recorder import Visit
from pyshardy.propagation.sharding_store import ShardingStore
from pyshardy.propagation.trace import ERASED, GROUP_STEP


class ShardingTimeline(ShardingStore):
    """The sharding of every value at every time of one run.

    Args:
        layout: The program.
        visits: The visits of the run that changed something.

    Attributes:
        first: The sharding of every value before the first sweep.
        originals: The annotations with dimensions of later user priorities, by value.
        written: Per time, the values that were written then.
        last: The sharding of every value after the last phase.
    """

    def __init__(self, layout: Layout, visits: Sequence[Visit]) -> None:
        super().__init__(layout)
        self.first, self.originals = masked_all(layout)
        self.written: dict[int, list[int]] = {}
        self._times: dict[int, list[int]] = {}
        self._states: dict[int, list[TensorSharding]] = {}
        self._now = list(self.first)
        self._time = -1
        self._notifying: dict[int, list[int]] = {}
        self._replay(visits)
        self.last: Sequence[TensorSharding | None] = self._now

    def _replay(self, visits: Sequence[Visit]) -> None:
        layout = self.layout
        numbers = {turn: number for number, turn in enumerate(layout.turns)}
        done, at, latest = 0, -1, 0
        program, now = layout.program, self._now
        is_unsharded = not (program.views or program.groups or program.siblings)
        tensors, starts = layout.tensors.numbers, layout.tensors.starts
        for visit in visits:
            if visit[0] == GROUP_STEP:
                continue
            if visit[0] == ERASED:
                at, latest = 0, max(latest, layout.sweep_of(visit[1]))
                continue
            op, step, current, priority, round_ = visit
            number = numbers[priority, round_, step.strategy]
            if number != at:
                done = self._restore_up_to(priority, done)
                at, latest = number, 0
            latest = self._slot(op, latest)
            self._time = at * layout.width + latest
            updates = layout.outcome(op, step, current)
            if is_unsharded:
                first = starts[op]
                for tensor, sharding in updates:
                    value = tensors[first + tensor]
                    if value != NO_VALUE and now[value] is not sharding:
                        self.put(value, sharding)
            else:
                self.write(op, updates)
        self._restore_up_to(layout.priorities[-1], done)

    def _slot(self, op: int, latest: int) -> int:
        """The time within its sweep of a visit that follows a visit at `latest`: times only ascend."""
        layout = self.layout
        if op < layout.count:
            return max(latest, layout.sweep_of(op))
        number = op - layout.count
        return 1 + number if latest < 1 + number else layout.sweep_of(layout.count) + number

    def _restore_up_to(self, priority: int, done: int) -> int:
        """Restore the axes of annotations up to a user priority; return how many priorities are restored by now."""
        layout = self.layout
        while done < layout.priorities.index(priority):
            done += 1
            self._time = layout.turns.index(next(t for t in layout.turns if t[0] == layout.priorities[done]))
            self._time *= layout.width
            for value, original in self.originals.items():
                new = restored(self._now[value], original, layout.priorities[done])
                if new is not None:
                    self.set(value, new)
        return done

    def get(self, value: int) -> TensorSharding | None:  # noqa: D102
        return self._now[value]

    def put(self, value: int, sharding: TensorSharding) -> None:  # noqa: D102
        self._now[value] = sharding
        time, times = self._time, self._times.get(value)
        if times is None:
            self._times[value], self._states[value] = [time], [sharding]
        elif times[-1] == time:
            self._states[value][-1] = sharding
            return
        else:
            times.append(time)
            self._states[value].append(sharding)
        together = self.written.get(time)
        if together is None:
            self.written[time] = [value]
        else:
            together.append(value)

    def before(self, value: int, time: int) -> TensorSharding | None:
        """The sharding of a value before the phase of a time."""
        times = self._times.get(value)
        place = bisect_left(times, time) if times else 0
        return self._states[value][place - 1] if place else self.first[value]

    def after(self, value: int, time: int) -> TensorSharding | None:
        """The sharding of a value after the phase of a time."""
        times = self._times.get(value)
        place = bisect_right(times, time) if times else 0
        return self._states[value][place - 1] if place else self.first[value]

    def next_notified(self, op: int, time: int) -> int:
        """The next time at which a new sharding scheduled an op; `end` if none did."""
        end = self.layout.end
        for value in self._notifying_values(op):
            times = self._times[value]
            place = bisect_right(times, time)
            if place < len(times) and times[place] < end:
                end = times[place]
        return end

    def _notifying_values(self, op: int) -> list[int]:
        """The written values whose new shardings schedule an op."""
        found = self._notifying.get(op)
        if found is None:
            program, listed = self.layout.program, self._listed
            near = (*program.operands[op], *program.results[op]) if op < self.layout.count else ()
            own = [value for value in near if value in self._times and value not in program.notified]
            found = self._notifying[op] = list(dict.fromkeys([*own, *listed.get(op, ())]))
        return found

    @cached_property
    def _listed(self) -> Mapping[int, list[int]]:
        """Per op, written values that it neither computes nor uses, but whose new shardings schedule it."""
        program = self.layout.program
        is_result = bytearray(len(program.shapes))
        for value in program.results.numbers:
            is_result[value] = 1
        found: dict[int, list[int]] = {}
        for value in self._times:
            for to_revisit in program.notified.get(
                value, () if is_result[value] else program.owners[value : value + 1]
            ):
                found.setdefault(to_revisit, []).append(value)
        return found
