# cython: boundscheck=False, initializedcheck=False
"""The worklist and fixed point of propagation.

Source: docs/semantics/propagation.md#the-fixed-point

The order of visits is part of the result. It is a sweep over all ops in program order. If a change affects ops that
the sweep has passed, these are visited again at once, the last affected op first. A visit is a pure function of
shardings and directions. So an op is skipped if its last visit changed nothing, and its shardings and directions are
the same since. This is exact, and makes most of a sweep free.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyshardy.core.sharding import TensorSharding
from pyshardy.propagation.dead_ops import DEAD, DeadOps
from pyshardy.propagation.plans import ALL_ROUNDS, Current, Plans, StepPlan
from pyshardy.propagation.prepare import OWNER_AND_USERS, classify_readers, find_other_readers, with_main_results
from pyshardy.propagation.program import NO_VALUE, ManualView, Program
from pyshardy.propagation.recorder import Visit
from pyshardy.propagation.schedule import ROUNDS
from pyshardy.propagation.step import Strategy, Update
from pyshardy.propagation.trace import ERASED, GROUP_STEP
from pyshardy.propagation.views import from_other_side, to_other_side

_IS_TO_VISIT = [bytes([not mask >> round_ & 1 for mask in range(256)]) for round_ in range(ROUNDS)]
"""Per round: the table that maps the bit set of an op's clean rounds to whether to visit the op."""

_FEW = 4


class PropagationEngine:
    """The state of propagation over one program.

    Args:
        program: The program.
        is_conservative: Whether conservative mode applies to the ops that obey it.
        trace: The list to which to append visits, for `recorder.steps_of`; None records nothing.

    Attributes:
        shardings: The sharding of every value; only `set_sharding` changes it.
        user_priority: The user priority of the current round, for the trace.
    """

    def __init__(self, program: Program, is_conservative: bool = False, trace: list[Visit] | None = None) -> None:
        self.program = program
        self.shardings: list[TensorSharding | None] = [*program.shardings, None]  # the last belongs to NO_VALUE
        self.user_priority = 0
        self._trace = trace
        self._count = len(program.kind_of)
        kinds, kind_of, tensors = with_main_results(program)
        self._kinds = kinds
        self._kind_of = kind_of
        self._tensors = tensors.numbers
        self._tensor_starts = tensors.starts
        self._operands = program.operands.numbers
        self._operand_starts = program.operands.starts
        self._views = dict(program.views)
        self._notified = dict(program.notified)
        self._owners = program.owners
        self._users = program.users.numbers
        self._user_starts = program.users.starts
        self._other_readers = find_other_readers(program, tensors)
        self._group_of = {value: group for group in program.groups for value in group}
        self._reader_kind = classify_readers(program, (*self._other_readers, *self._group_of))
        self._dead = DeadOps(program)
        self._state = self._dead.state
        self._lacks_single_use = self._dead.lacks_single_use
        self._plans = Plans(program, kinds, is_conservative)
        self._clean: dict[Strategy, bytearray] = {}
        self._cleans: list[bytearray] = []
        self._todo = bytearray(len(self._kind_of))
        self._on_stack = bytearray(len(self._kind_of))
        self._stack: list[int] = []
        self._next = 0
        self._visiting = -1
        self._strategy = Strategy.BASIC

    def _tensors_of(self, number: int) -> tuple[int, ...]:
        tensors = self._tensors
        return tuple([tensors[place] for place in range(self._tensor_starts[number], self._tensor_starts[number + 1])])

    @property
    def erased(self) -> list[int]:
        """The ops that were removed as dead code, in program order."""
        return self._dead.erased

    @property
    def other_readers(self) -> dict[int, list[int]]:
        """Per value, the ops whose step looks at its sharding without computing or using it."""
        return self._other_readers

    def _clean_of(self, strategy: Strategy) -> bytearray:
        """Per op, the rounds in which a visit with this strategy is known to change nothing."""
        found = self._clean.get(strategy)
        if found is None:
            found = self._clean[strategy] = self._initially_clean()
            self._cleans.append(found)
        return found

    def _initially_clean(self) -> bytearray:
        initial = bytes([ALL_ROUNDS if kind.rule is None else 0 for kind in self._kinds])
        kind_of, state = self._kind_of, self._state
        found = bytearray(len(kind_of))
        for number in range(len(kind_of)):
            if number >= self._count or not state[number]:
                found[number] = initial[kind_of[number]]
        return found

    def run(self, strategy: Strategy, round_: int) -> None:
        """One run: the results of the main function, a sweep over all ops, then the results again."""
        self._strategy = strategy
        clean, plans = self._clean_of(strategy), self._plans.of(strategy, round_)
        self._visit_main_results(clean, plans, round_)
        self._todo = clean.translate(_IS_TO_VISIT[round_])
        self._todo[self._count :] = bytes(len(self._kind_of) - self._count)
        self._sweep(clean, plans, round_)
        self._visit_main_results(clean, plans, round_)

    def _visit_main_results(self, clean: bytearray, plans: list[StepPlan | None], round_: int) -> None:
        for number in range(self._count, len(self._kind_of)):
            if not clean[number] >> round_ & 1:
                self._visit(number, clean, plans, round_)

    def _sweep(self, clean: bytearray, plans: list[StepPlan | None], round_: int) -> None:
        stack, on_stack, todo, state = self._stack, self._on_stack, self._todo, self._state
        end = self._count
        self._next = 0
        while True:
            if stack:
                number = stack.pop()
                on_stack[number] = 0
            else:
                number = self._next
                if number == end or not todo[number]:
                    number = todo.find(1, number, end)
                    if number < 0:
                        return
                self._next = number + 1
            todo[number] = 0
            if state[number]:
                if state[number] == DEAD:
                    if self._trace is not None:
                        self._trace.append((ERASED, number))
                    self._erase(number)
            elif not clean[number] >> round_ & 1:
                self._visit(number, clean, plans, round_)

    def _visit(self, number: int, clean: bytearray, plans: list[StepPlan | None], round_: int) -> None:
        """Propagate through one op."""
        kind = self._kind_of[number]
        plan = plans[kind]
        if plan is None:
            plan = plans[kind] = self._plans.make(kind, self._strategy, round_)
        if plan.step is None:
            clean[number] = ALL_ROUNDS
            return
        if plan.waits and self._waits(number):
            clean[number] |= 1
            return
        view = self._views.get(number) if self._views else None
        current = self._current(number, view)
        outcome = plan.outcomes.get(current)
        if outcome is None:
            outcome = self._plans.new_outcome(number, plan, current)
        updates, settled = outcome
        if not updates:
            clean[number] |= settled or plan.same
            return
        if self._trace is not None:
            self._trace.append((number, plan.step, current, self.user_priority, round_))
        self._visiting = number
        if view is None:
            self._write(number, updates)
            if not self._group_of and self._is_distinct(number):
                clean[number] = plan.same & settled
        else:
            self._write_viewed(number, view, updates)
        self._visiting = -1

    def _current(self, number: int, view: ManualView | None) -> Current:
        """The shardings that a visit of an op is given."""
        shardings, tensors = self.shardings, self._tensors
        start, end = self._tensor_starts[number], self._tensor_starts[number + 1]
        if view is not None:
            found = tuple([shardings[tensors[place]] for place in range(start, end)])
            return *found[:-1], to_other_side(view, found[-1])
        if end - start == 2:
            return shardings[tensors[start]], shardings[tensors[start + 1]]
        if end - start == 3:
            return shardings[tensors[start]], shardings[tensors[start + 1]], shardings[tensors[start + 2]]
        return tuple([shardings[tensors[place]] for place in range(start, end)])

    def _write(self, number: int, updates: tuple[Update, ...]) -> None:
        """Write the outcome of a step."""
        tensors, start = self._tensors, self._tensor_starts[number]
        for tensor, sharding in updates:
            value = tensors[start + tensor]
            if value != NO_VALUE:
                self._set_and_schedule(number, value, sharding, sharding)

    def _is_distinct(self, number: int) -> bool:
        """Whether the tensors of an op are all different."""
        tensors = self._tensors
        start, end = self._tensor_starts[number], self._tensor_starts[number + 1]
        if end - start > _FEW:
            return len({tensors[place] for place in range(start, end)}) == end - start
        for place in range(start + 1, end):
            for earlier in range(start, place):
                if tensors[earlier] == tensors[place]:
                    return False
        return True

    def _write_viewed(self, number: int, view: ManualView, updates: tuple[Update, ...]) -> None:
        """Write the outcome of a step for the edge of a manual computation; the edge is the last tensor."""
        tensors = self._tensors_of(number)
        for tensor, sharding in updates:
            is_edge = tensor == len(tensors) - 1
            held = from_other_side(view, sharding) if is_edge else sharding
            if tensors[tensor] != NO_VALUE:
                self._set_and_schedule(number, tensors[tensor], held, sharding)

    def _set_and_schedule(self, number: int, value: int, held: TensorSharding, given: TensorSharding) -> None:
        """Write the sharding of a value, and schedule the ops that read the value or the given sharding."""
        if number >= self._count:
            # No op is visited again: a sweep over everything follows, or the run is over.
            self.set_sharding(value, held)
            for _ in self._copy_to_group(value, given):
                pass
        elif self._reader_kind[value]:
            self.shardings[value] = held
            if self._reader_kind[value] == OWNER_AND_USERS:
                self._schedule_reader(self._owners[value])
                users = self._users
                for place in range(self._user_starts[value], self._user_starts[value + 1]):
                    self._schedule_reader(users[place])
            else:
                to_revisit = self._notified[value]
                for reader in to_revisit:
                    self._schedule_reader(reader)
        else:
            self.set_sharding(value, held)
            self._push_all(self.program.to_revisit(value))
            for member in self._copy_to_group(value, given):
                self._push_all(self.program.to_revisit(member))

    def _schedule_reader(self, number: int) -> None:
        """Schedule an op that reads a new sharding."""
        for clean in self._cleans:
            clean[number] = 0
        self._push(number)

    def _waits(self, number: int) -> bool:
        """Whether an operand of the op that is not a scalar has other uses."""
        lacks_single_use, operands = self._lacks_single_use, self._operands
        for place in range(self._operand_starts[number], self._operand_starts[number + 1]):  # noqa: SIM110 (faster)
            if lacks_single_use[operands[place]]:
                return True
        return False

    def set_sharding(self, value: int, sharding: TensorSharding) -> None:
        """Write the sharding of a value; every op that reads it will be visited again."""
        shardings = self.shardings
        if shardings[value] is sharding:
            return
        shardings[value] = sharding
        self._mark_readers(value)
        for sibling in self.program.siblings.get(value, ()):
            if shardings[sibling] is None:
                rank = len(self.program.shapes[sibling] or ())
                shardings[sibling] = TensorSharding.fully_replicated(sharding.mesh, rank, is_open=True)
                self._mark_readers(sibling)

    def _mark_readers(self, value: int) -> None:
        """Mark every op that may read the value for another visit."""
        users = self._users
        if self._owners[value] >= 0:
            self._mark(self._owners[value])
        for place in range(self._user_starts[value], self._user_starts[value + 1]):
            self._mark(users[place])
        for reader in self._other_readers.get(value, ()):
            self._mark(reader)

    def _mark(self, number: int) -> None:
        for clean in self._cleans:
            clean[number] = 0
        self._todo[number] = 1

    def _copy_to_group(self, value: int, sharding: TensorSharding) -> Iterator[int]:
        """Give `sharding` to the other members of the value's sharding group; yield each right after it changed.

        The edge of a manual computation holds another view of it, but the group gets the sharding of the step.
        """
        for member in self._group_of.get(value, ()):
            if member != value and self.shardings[member] is not sharding:
                if self._trace:
                    self._trace.append((GROUP_STEP, value, member, sharding))
                self.set_sharding(member, sharding)
                yield member

    def _push_all(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._push(number)

    def _push(self, number: int) -> None:
        """Schedule an op: in its turn if the sweep has not reached it, else next."""
        if number >= self._next:
            self._todo[number] = 1
        elif not self._on_stack[number] and number != self._visiting:
            self._on_stack[number] = 1
            self._stack.append(number)

    def _erase(self, number: int) -> None:
        """Remove a dead op, and schedule the ops that this concerns."""
        for users, owner in self._dead.erase(number):
            for user in users:
                for clean in self._cleans:
                    clean[user] &= ~1  # whether it waits in round 0 may have changed
                self._todo[user] = 1
            if owner >= 0:
                self._push(owner)
