"""When a run of propagation wrote which sharding: what a run with other annotations is compared with.

A run is a row of *phases*: the visit of one op in its turn, with all visits that it makes necessary at once. Phases
have times that are the same in every run over one program, whatever its annotations.

Source: docs/semantics/propagation.md#running-again-after-an-edit
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product

from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import InvalidShardingError
from pyshardy.graph.program import NO_VALUE, Program
from pyshardy.propagation.erasures import Erasures
from pyshardy.propagation.options import PropagateOptions
from pyshardy.propagation.prepare import with_main_results
from pyshardy.propagation.recorder import Recording, Visit
from pyshardy.propagation.schedule import LAST_ROUND, ROUNDS, directions
from pyshardy.propagation.step import StepError, StepInput, Strategy, Update, propagate_step
from pyshardy.propagation.trace import ERASED, GROUP
from pyshardy.propagation.user_priorities import mask, restore
from pyshardy.propagation.views import from_other_side, to_other_side
from pyshardy.rules.properties import Priority

Current = tuple[TensorSharding | None, ...]
Turn = tuple[int, int, Strategy]
"""User priority, op-priority round and strategy of a sweep."""


class Layout:
    """The program as a run sees it, and the times of its phases.

    Args:
        program: The program.
        options: How to propagate.
        recording: The record of a run over it.

    Attributes:
        erasures: Its dead ops.
        turns: The sweeps in order.
        width: The times of one sweep: restoring a priority, the results of the main function, every op, the results.
        end: The time behind the last phase.
    """

    def __init__(self, program: Program, options: PropagateOptions, recording: Recording) -> None:
        self.program = program
        self.options = options
        self.kinds, self.kind_of, self.tensors = with_main_results(program)
        self.count = len(program.kind_of)
        self.main_count = len(self.kind_of) - self.count
        self.width = self.count + 2 * self.main_count + 1
        self.priorities = priorities_of(program.shardings) if options.user_priorities else (0,)
        rounds = range(ROUNDS) if options.op_priorities else (LAST_ROUND,)
        self.turns: list[Turn] = list(product(self.priorities, rounds, options.strategy.strategies))
        self.end = len(self.turns) * self.width
        self.group_of = {value: group for group in program.groups for value in group}
        self.erasures = Erasures(program, recording.visits)
        self._other_readers = recording.other_readers
        self._steps: dict[tuple[int, int, Strategy], StepInput | None] = {}
        self._outcomes: dict[StepInput, dict[Current, tuple[Update, ...]]] = {}
        self._readers: dict[int, tuple[int, ...]] = {}

    def sweep_of(self, op: int) -> int:
        """The time of the phase of an op within a sweep."""
        return 1 + self.main_count + op

    def readers(self, value: int) -> tuple[int, ...]:
        """The ops, and results of the main function, whose visit may look at or write the value."""
        found = self._readers.get(value)
        if found is None:
            near = dict.fromkeys(self._tied(value))
            readers = dict.fromkeys(reader for tied in near for reader in self._direct_readers(tied))
            found = self._readers[value] = tuple([op for op in readers if op >= 0 and self._has_rule(op)])
        return found

    def _tied(self, value: int) -> Iterator[int]:
        """The value, and those that are written together with it."""
        siblings = self.program.siblings
        for member in (value, *self.group_of.get(value, ())):
            yield member
            yield from siblings.get(member, ())
        for sibling in siblings.get(value, ()):
            yield from self.group_of.get(sibling, ())

    def _direct_readers(self, value: int) -> Iterator[int]:
        program = self.program
        yield program.owners[value] if value < len(program.owners) else -1
        if value < len(program.users.starts) - 1:
            yield from program.users[value]
        yield from self._other_readers.get(value, ())

    def _has_rule(self, op: int) -> bool:
        return self.kinds[self.kind_of[op]].rule is not None

    def step(self, op: int, turn: Turn) -> StepInput | None:
        """What a visit of an op does in a sweep; None if nothing."""
        number, (_, round_, strategy) = self.kind_of[op], turn
        key = number, round_, strategy
        if key not in self._steps:
            kind = self.kinds[number]
            self._steps[key] = None if kind.rule is None else StepInput(
                kind.rule,
                directions(kind.rule, kind.priority, kind.direction, round_),
                strategy,
                self.options.conservative and not kind.ignores_conservative,
                kind.is_elementwise,
            )  # fmt: skip
        return self._steps[key]

    def waits(self, op: int, turn: Turn, is_erased: Callable[[int], bool]) -> bool:
        """Whether an op takes no part in a sweep because an operand has other uses.

        Args:
            op: The op.
            turn: The sweep.
            is_erased: Whether an op is erased by now.
        """
        if turn[1] or op >= self.count:
            return False
        program = self.program
        if self.kinds[self.kind_of[op]].priority not in (Priority.PASS_THROUGH, Priority.FORWARD):
            return False
        starts, shapes = program.users.starts, program.shapes
        for value in program.operands[op]:
            uses = starts[value + 1] - starts[value]
            if self.erasures.turns:
                uses -= sum(is_erased(user) for user in program.users[value])
            if uses != 1 and shapes[value] != ():
                return True
        return False

    def outcome(self, op: int, step: StepInput, current: Current) -> tuple[Update, ...]:
        """What a step gives for some shardings.

        Raises:
            StepError: A sharding that is not valid.
        """
        outcomes = self._outcomes.setdefault(step, {})
        found = outcomes.get(current)
        if found is None:
            try:
                found = propagate_step(step, current, self.program.meshes) if any(current) else ()
            except InvalidShardingError as error:
                raise StepError(op, error) from error
            outcomes[current] = found
        return found


class Board:
    """Shardings that visits read and write.

    Args:
        layout: The program.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def get(self, value: int) -> TensorSharding | None:
        """The sharding of a value now."""
        raise NotImplementedError

    def put(self, value: int, sharding: TensorSharding) -> None:
        """Write the sharding of a value."""
        raise NotImplementedError

    def tell(self, value: int) -> None:
        """Have those visited whom a new sharding concerns."""

    def current(self, op: int) -> Current:
        """The shardings that a visit of an op is given."""
        layout = self.layout
        found = tuple([None if value == NO_VALUE else self.get(value) for value in layout.tensors[op]])
        view = layout.program.views.get(op) if layout.program.views else None
        return found if view is None else (*found[:-1], to_other_side(view, found[-1]))

    def write(self, op: int, updates: Sequence[Update]) -> None:
        """Write what a visit of an op gives."""
        layout = self.layout
        tensors, view = layout.tensors[op], layout.program.views.get(op) if layout.program.views else None
        for tensor, given in updates:
            value = tensors[tensor]
            if value == NO_VALUE:
                continue
            held = given if view is None or tensor < len(tensors) - 1 else from_other_side(view, given)
            self.set(value, held)
            self.tell(value)
            for member in layout.group_of.get(value, ()):
                if member != value and self.get(member) is not given:
                    self.set(member, given)
                    self.tell(member)

    def set(self, value: int, sharding: TensorSharding) -> None:
        """Write the sharding of a value, and those that are stored with it and have none yet."""
        if self.get(value) is sharding:
            return
        self.put(value, sharding)
        program = self.layout.program
        for sibling in program.siblings.get(value, ()) if program.siblings else ():
            if self.get(sibling) is None:
                rank = len(program.shapes[sibling] or ())
                self.put(sibling, TensorSharding.fully_replicated(sharding.mesh, rank, is_open=True))


class Timeline(Board):
    """Who wrote what when in one run.

    Args:
        layout: The program.
        visits: The visits of the run that changed something.

    Attributes:
        first: The sharding of every value before the first sweep.
        originals: The annotations of which dimensions come later, by value.
        written: Per time, the values that were written then.
    """

    def __init__(self, layout: Layout, visits: Sequence[Visit]) -> None:
        super().__init__(layout)
        self.first, self.originals = masked_all(layout)
        self.written: dict[int, list[int]] = {}
        self._times: dict[int, list[int]] = {}
        self._states: dict[int, list[TensorSharding]] = {}
        self._now = list(self.first)
        self._time = -1
        self._told: dict[int, list[int]] = {}
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
            if visit[0] == GROUP:
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
        """The time of a visit within its sweep, if it follows one of another time: times only ascend."""
        layout = self.layout
        if op < layout.count:
            return max(latest, layout.sweep_of(op))
        number = op - layout.count
        return 1 + number if latest < 1 + number else layout.sweep_of(layout.count) + number

    def _restore_up_to(self, priority: int, done: int) -> int:
        """Give annotations their axes back up to a user priority; how many priorities were restored."""
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
        """The sharding of a value behind the phase of a time."""
        times = self._times.get(value)
        place = bisect_right(times, time) if times else 0
        return self._states[value][place - 1] if place else self.first[value]

    def next_told(self, op: int, time: int) -> int:
        """The next time behind one at which an op was told of a new sharding; the end if it was not."""
        end = self.layout.end
        for value in self._tellers(op):
            times = self._times[value]
            place = bisect_right(times, time)
            if place < len(times) and times[place] < end:
                end = times[place]
        return end

    def _tellers(self, op: int) -> list[int]:
        """The values that were written of which an op is told."""
        found = self._told.get(op)
        if found is None:
            program, listed = self.layout.program, self._listed
            near = (*program.operands[op], *program.results[op]) if op < self.layout.count else ()
            own = [value for value in near if value in self._times and value not in program.notified]
            found = self._told[op] = list(dict.fromkeys([*own, *listed.get(op, ())]))
        return found

    @cached_property
    def _listed(self) -> Mapping[int, list[int]]:
        """Per op, the values that were written of which it is told without computing or using them."""
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


def priorities_of(shardings: Sequence[TensorSharding | None]) -> tuple[int, ...]:
    """The user priorities of annotations, 0 first.

    >>> from pyshardy.core.notation import parse_sharding
    >>> priorities_of([parse_sharding('<@m, [{"p"}p2, {"q", ?}p1]>'), None])
    (0, 1, 2)
    """
    distinct = {sharding for sharding in shardings if sharding is not None}
    return (0, *sorted({dim.priority for sharding in distinct for dim in sharding.dims if dim.priority}))


def masked_all(layout: Layout) -> tuple[list[TensorSharding | None], Mapping[int, TensorSharding]]:
    """The shardings of all values in the first round, and the annotations of which dimensions come later."""
    program = layout.program
    first: list[TensorSharding | None] = list(program.shardings)
    if not layout.options.user_priorities:
        return first, {}
    originals: dict[int, TensorSharding] = {}
    known: dict[TensorSharding, tuple[TensorSharding, bool]] = {}
    for value, sharding in enumerate(program.shardings):
        if sharding is None:
            continue
        if sharding not in known:
            known[sharding] = masked(layout, sharding)
        first[value], is_hidden = known[sharding]
        if is_hidden:
            originals[value] = sharding
        for sibling in program.siblings.get(value, ()) if first[value] is not sharding else ():
            if first[sibling] is None:
                rank = len(program.shapes[sibling] or ())
                first[sibling] = TensorSharding.fully_replicated(sharding.mesh, rank, is_open=True)
    return first, originals


def masked(layout: Layout, sharding: TensorSharding) -> tuple[TensorSharding, bool]:
    """An annotation as it is in the first round, and whether dimensions of it come later."""
    priorities = {dim.priority for dim in sharding.dims} if layout.options.user_priorities else {None}
    return sharding if priorities <= {None} else mask(sharding, layout.program.meshes), any(priorities)


def restored(current: TensorSharding | None, original: TensorSharding, priority: int) -> TensorSharding | None:
    """A sharding with the dimensions of a priority as annotated; None if that changes nothing.

    Raises:
        InvalidShardingError: It is not valid.
    """
    if current is None or priority not in {dim.priority for dim in original.dims}:
        return None
    return restore(current, original, priority)
