"""What all runs of propagation over a program share: its numbers, and the times of the phases.

Source: docs/semantics/propagation.md#running-again-after-an-edit
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import InvalidShardingError
from pyshardy.propagation.erasures import Erasures
from pyshardy.propagation.options import PropagateOptions
from pyshardy.propagation.plans import Current
from pyshardy.propagation.prepare import with_main_results
from pyshardy.propagation.program import Program
from pyshardy.propagation.recorder import Recording
from pyshardy.propagation.schedule import LAST_ROUND, ROUNDS, directions
from pyshardy.propagation.step import StepError, StepInput, Strategy, Update, propagate_step
from pyshardy.rules.properties import Priority

Turn = tuple[int, int, Strategy]
"""User priority, op-priority round and strategy of a sweep."""


class Layout:
    """The program as a run sees it, and the times of its phases.

    Args:
        program: The program.
        options: The options of propagation.
        recording: The record of a run over the program.

    Attributes:
        erasures: The dead ops of the program.
        turns: The sweeps, in order.
        width: The number of times in one sweep: restoring a priority, the results of the main function, every op, the
            results again.
        end: The time after the last phase.
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
        """The ops, and results of the main function, whose visit may read or write the value."""
        found = self._readers.get(value)
        if found is None:
            near = dict.fromkeys(self._tied(value))
            readers = dict.fromkeys(reader for tied in near for reader in self._direct_readers(tied))
            found = self._readers[value] = tuple([op for op in readers if op >= 0 and self._has_rule(op)])
        return found

    def _tied(self, value: int) -> Iterator[int]:
        """The value, and the values that are written together with it: of its sharding group and its list."""
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
        """The step of an op in a sweep; None if nothing propagates through the op."""
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
        """The outcome of a step for these shardings.

        Raises:
            StepError: The outcome contains an invalid sharding.
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


def priorities_of(shardings: Sequence[TensorSharding | None]) -> tuple[int, ...]:
    """The user priorities of annotations, 0 first.

    >>> from pyshardy.core.notation import parse_sharding
    >>> priorities_of([parse_sharding('<@m, [{"p"}p2, {"q", ?}p1]>'), None])
    (0, 1, 2)
    """
    distinct = {sharding for sharding in shardings if sharding is not None}
    return (0, *sorted({dim.priority for sharding in distinct for dim in sharding.dims if dim.priority}))
