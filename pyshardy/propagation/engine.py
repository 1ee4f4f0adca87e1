"""The one worklist and fixed point of propagation (propagation spec, section 6).

The order of visits is part of the result. It is that of a sweep over all ops in program order, in which an
op that a change concerns and that was already passed is visited again at once, last concerned first. A
visit is a pure function of shardings and directions, so an op whose last visit changed nothing is skipped
until one of its shardings, or its directions, change; that is exact and makes most of a sweep free.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import InvalidShardingError
from pyshardy.graph.program import NO_VALUE, OpNode, Program
from pyshardy.propagation.schedule import ROUNDS, directions, same_rounds
from pyshardy.propagation.step import StepError, StepInput, Strategy, Update, explain_step, propagate_step
from pyshardy.propagation.trace import GROUP, MAIN_RESULT, Step
from pyshardy.propagation.views import join_manual_axes, strip_manual_axes
from pyshardy.rules.draft import identity_rule
from pyshardy.rules.properties import Priority

_Outcome = tuple[tuple[Update, ...], bool]
"""What a step gives, and whether it would give nothing if it were repeated at once."""
_ALL_ROUNDS = (1 << ROUNDS) - 1
_DIRTY_IN_ROUND = [bytes(0 if mask >> round_ & 1 else 1 for mask in range(256)) for round_ in range(ROUNDS)]


class Engine:
    """The state of propagation over one program.

    Args:
        program: The program.
        is_conservative: Whether conservative propagation applies to the ops that obey it.
        trace: Where to record steps; None records nothing.

    Attributes:
        shardings: The sharding of every value; only `set_sharding` changes it.
        erased: Per op, whether it was removed as dead code.
        user_priority: The user priority of the round, for the trace.
    """

    def __init__(self, program: Program, is_conservative: bool = False, trace: list[Step] | None = None) -> None:
        self.program = program
        self.shardings: list[TensorSharding | None] = [*program.shardings, None]  # the last is that of NO_VALUE
        self.erased = bytearray(len(program.ops))
        self.user_priority = 0
        self._is_conservative = is_conservative
        self._trace = trace
        self._nodes = [*program.ops, *_main_result_nodes(program)]
        self._readers = _readers(self._nodes, len(program.values))
        self._uses_left = [len(value.users) for value in program.values]
        self._group_of = {value: group for group in program.groups for value in group}
        self._outcomes: dict[tuple[StepInput, tuple[TensorSharding | None, ...]], _Outcome] = {}
        self._clean = {strategy: self._initially_clean() for strategy in Strategy}
        self._todo = bytearray(len(self._nodes))
        self._on_stack = bytearray(len(self._nodes))
        self._stack: list[int] = []
        self._next = 0
        self._visiting = -1

    def _initially_clean(self) -> bytearray:
        """Per op, the rounds in which a visit is known to change nothing."""
        return bytearray(
            0 if node.rule is not None or self._is_dead(number) else _ALL_ROUNDS
            for number, node in enumerate(self._nodes)
        )

    def run(self, strategy: Strategy, round_: int) -> None:
        """One run: the results of the main function, a sweep over all ops, the results again."""
        self._visit_main_results(strategy, round_)
        self._todo = self._clean[strategy][: len(self.program.ops)].translate(_DIRTY_IN_ROUND[round_])
        self._todo += bytes(len(self._nodes) - len(self._todo))
        self._sweep(strategy, round_)
        self._visit_main_results(strategy, round_)

    def _visit_main_results(self, strategy: Strategy, round_: int) -> None:
        clean = self._clean[strategy]
        for number in range(len(self.program.ops), len(self._nodes)):
            if not clean[number] >> round_ & 1:
                # Nobody is told: a sweep over everything follows, or the run is over.
                for value, sharding in self._visit(number, strategy, round_):
                    for _ in self._copy_to_group(value, sharding):
                        pass

    def _sweep(self, strategy: Strategy, round_: int) -> None:
        stack, on_stack, todo, clean = self._stack, self._on_stack, self._todo, self._clean[strategy]
        self._next = 0
        while True:
            if stack:
                number = stack.pop()
                on_stack[number] = 0
            else:
                number = todo.find(1, self._next)
                if number < 0 or number >= len(self.program.ops):
                    return
                self._next = number + 1
            todo[number] = 0
            if self.erased[number]:
                continue
            if self._is_dead(number):
                self._erase(number)
            elif not clean[number] >> round_ & 1:
                self._visiting = number
                for value, sharding in self._visit(number, strategy, round_):
                    self._announce(value, sharding)
                self._visiting = -1

    def _visit(self, number: int, strategy: Strategy, round_: int) -> Iterable[tuple[int, TensorSharding]]:
        """Propagate through one op; yields every value, right after it was written, with what the step gave it."""
        node = self._nodes[number]
        clean = self._clean[strategy]
        shardings = self.shardings
        current = tuple([shardings[value] for value in node.tensors])
        rule = node.rule
        if rule is None or not any(current):
            clean[number] = _ALL_ROUNDS
            return ()
        if round_ == 0 and self._waits(node):
            clean[number] |= 1
            return ()
        if node.view is not None:
            current = (*current[:-1], _to_other_side(node, current[-1]))
        step = StepInput(
            rule,
            directions(rule, node.priority, node.direction, round_),
            strategy,
            self._is_conservative and not node.ignores_conservative,
            node.is_elementwise,
        )
        updates, is_settled = self._outcome(number, step, current)
        same = same_rounds(rule, node.priority, node.direction, round_)
        if not updates:
            clean[number] |= same
            return ()
        if self._trace is not None:
            self._record(number, step, current, round_)
        return self._write(number, node, updates, clean, same if is_settled else 0)

    def _outcome(self, number: int, step: StepInput, current: tuple[TensorSharding | None, ...]) -> _Outcome:
        """What the step gives; few of a program's many steps are distinct."""
        found = self._outcomes.get((step, current))
        if found is None:
            try:
                updates = propagate_step(step, current, self.program.meshes)
            except InvalidShardingError as error:
                raise StepError(number, error) from error
            found = self._outcomes[step, current] = updates, self._is_settled(step, current, updates)
        return found

    def _is_settled(
        self, step: StepInput, current: tuple[TensorSharding | None, ...], updates: tuple[Update, ...]
    ) -> bool:
        """Whether the step would change nothing if it were repeated at once.

        It rarely would: where writing drops an axis that would need a strided layout, or where a sub-axis that
        grows no longer cuts another one in an impossible place.
        """
        after = list(current)
        for tensor, sharding in updates:
            after[tensor] = sharding
        try:
            return not updates or not propagate_step(step, after, self.program.meshes)
        except InvalidShardingError:
            return False

    def _write(
        self, number: int, node: OpNode, updates: tuple[Update, ...], clean: bytearray, same: int
    ) -> Iterable[tuple[int, TensorSharding]]:
        for tensor, sharding in updates:
            value = node.tensors[tensor]
            if value == NO_VALUE:
                continue
            is_viewed = node.view is not None and tensor == len(node.tensors) - 1
            self.set_sharding(value, _from_other_side(node, sharding) if is_viewed else sharding)
            yield value, sharding
        if node.view is None and len(set(node.tensors)) == len(node.tensors) and not self._group_of:
            clean[number] = same

    def _waits(self, node: OpNode) -> bool:
        """Whether the op takes no part in round 0 because an operand has other uses."""
        if node.priority is not Priority.PASS_THROUGH and node.priority is not Priority.FORWARD:
            return False
        values, uses_left = self.program.values, self._uses_left
        return any(uses_left[value] != 1 and values[value].shape != () for value in node.operands)

    def set_sharding(self, value: int, sharding: TensorSharding) -> None:
        """Write the sharding of a value; every op that reads it will be looked at again."""
        shardings = self.shardings
        if shardings[value] is sharding:
            return
        shardings[value] = sharding
        self._mark_readers(value)
        for sibling in self.program.values[value].siblings:
            if shardings[sibling] is None:
                rank = len(self.program.values[sibling].shape or ())
                shardings[sibling] = TensorSharding.replicated_like(sharding.mesh, rank, is_open=True)
                self._mark_readers(sibling)

    def _mark_readers(self, value: int) -> None:
        todo = self._todo
        basic, aggressive = self._clean.values()
        for reader in self._readers[value]:
            basic[reader] = aggressive[reader] = 0
            todo[reader] = 1

    def _announce(self, value: int, sharding: TensorSharding) -> None:
        """Push what the new sharding of a value concerns, and the same for the members of its sharding group."""
        for number in self.program.values[value].notified:
            self._push(number)
        for member in self._copy_to_group(value, sharding):
            for number in self.program.values[member].notified:
                self._push(number)

    def _copy_to_group(self, value: int, sharding: TensorSharding) -> Iterator[int]:
        """Give the other members of the value's sharding group its sharding; yields each right after it changed.

        The edge of a manual computation holds another view than the step gave it; the group gets what the step gave.
        """
        for member in self._group_of.get(value, ()):
            if member != value and self.shardings[member] is not sharding:
                self._record_copy(value, member, sharding)
                self.set_sharding(member, sharding)
                yield member

    def _push(self, number: int) -> None:
        """Have an op visited: in its turn if that is still to come, else next."""
        if number == self._visiting or self._on_stack[number]:
            return
        if number >= self._next:
            self._todo[number] = 1
        else:
            self._on_stack[number] = 1
            self._stack.append(number)

    def _is_dead(self, number: int) -> bool:
        node = self._nodes[number]
        return node.is_erasable and not any(self._uses_left[result] for result in node.results)

    def _erase(self, number: int) -> None:
        """Remove a dead op, those inside it first, and look again at what computed its operands."""
        for inner in range(len(self.program.ops) - 1, number, -1) if self._holds_ops(number) else ():
            if self.program.ops[inner].parent == number and not self.erased[inner]:
                self._erase(inner)
        self.erased[number] = 1
        values = self.program.values
        for value in self.program.ops[number].operands:
            self._uses_left[value] -= 1
            users = {user for user in values[value].users if not self.erased[user]}
            for user in users:
                for clean in self._clean.values():
                    clean[user] &= ~1  # whether it waits in round 0 may have changed
                self._todo[user] = 1
            owner = values[value].owner
            if owner >= 0 and value in self.program.ops[owner].results and len(users) <= 1:
                self._push(owner)

    def _holds_ops(self, number: int) -> bool:
        following = number + 1
        return following < len(self.program.ops) and self.program.ops[following].parent == number

    def _record(self, number: int, step: StepInput, current: tuple[TensorSharding | None, ...], round_: int) -> None:
        """Write down what a step moves, even what writing the shardings drops."""
        assert self._trace is not None
        visit = self._trace[-1].number + 1 if self._trace else 0
        tensors = self._nodes[number].tensors
        op = number if number < len(self.program.ops) else MAIN_RESULT
        for move in explain_step(step, current, self.program.meshes):
            self._trace.append(
                Step(
                    number=visit,
                    op=op,
                    source=None if move.source is None else tensors[move.source],
                    target=tensors[move.target],
                    source_tensor=move.source,
                    target_tensor=move.target,
                    dim=move.dim,
                    factor=move.factor,
                    axes=move.axes,
                    is_kept=move.is_kept,
                    direction=step.directions[move.factor],
                    strategy=step.strategy,
                    user_priority=self.user_priority,
                    op_priority=round_,
                )
            )

    def _record_copy(self, value: int, member: int, sharding: TensorSharding) -> None:
        if not self._trace:
            return
        cause = self._trace[-1]
        for dim, dim_sharding in enumerate(sharding.dims):
            if dim_sharding.axes:
                self._trace.append(
                    replace(
                        cause,
                        op=GROUP,
                        source=value,
                        target=member,
                        source_tensor=0,
                        target_tensor=1,
                        dim=dim,
                        factor=dim,
                        axes=dim_sharding.axes,
                        is_kept=True,
                    )
                )


def _main_result_nodes(program: Program) -> Iterable[OpNode]:
    for returned, result in program.main_results:
        shape = program.values[returned].shape
        assert shape is not None
        yield OpNode(
            "func.return",
            (),
            (),
            identity_rule(shape),
            (program.values[returned].holder, result),
            Priority.FIXED,
            ignores_conservative=True,
        )


def _readers(nodes: list[OpNode], value_count: int) -> list[list[int]]:
    """Per value, the ops whose step looks at its sharding."""
    readers: list[list[int]] = [[] for _ in range(value_count + 1)]
    for number, node in enumerate(nodes):
        for value in node.tensors:
            readers[value].append(number)
    return readers


def _to_other_side(node: OpNode, sharding: TensorSharding | None) -> TensorSharding | None:
    """The sharding of a manual computation's edge as its sources see it."""
    view = node.view
    if view is None or sharding is None:
        return sharding
    if view.is_argument:
        return join_manual_axes(view.outer, sharding, view.manual_axes)
    return strip_manual_axes(sharding, view.manual_axes)


def _from_other_side(node: OpNode, sharding: TensorSharding) -> TensorSharding:
    """The inverse of `_to_other_side`."""
    view = node.view
    if view is None:
        return sharding
    if view.is_argument:
        return strip_manual_axes(sharding, view.manual_axes)
    return join_manual_axes(view.outer, sharding, view.manual_axes)
