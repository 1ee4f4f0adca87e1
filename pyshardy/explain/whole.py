"""Finds why a dimension was not sharded: which axes were candidates, and what prevented them.

After propagation, every op is examined again with the final shardings of its tensors. Some of them have an axis on the
factor of the dimension; the value, the op or the other tensors say what prevents it.

Source: docs/semantics/propagation.md#one-step
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd

from pyshardy.core.axes import AxisRef
from pyshardy.core.axis_lists import axes_size
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import common_mesh
from pyshardy.errors import InvalidShardingError
from pyshardy.explain.history import GIVEN_STEP, History
from pyshardy.explain.reason import Level, Reason, ReasonKind
from pyshardy.propagation.program import Direction
from pyshardy.propagation.projection import project
from pyshardy.propagation.schedule import ROUNDS, directions
from pyshardy.propagation.step import StepInput, Strategy, propagate_step
from pyshardy.propagation.trace import Step
from pyshardy.propagation.views import to_other_side
from pyshardy.rules.properties import Priority

_ORDER = {kind: place for place, kind in enumerate(ReasonKind)}


def whole_reasons(history: History, value: int, dim: int) -> list[Reason]:
    """The reasons why a dimension of a value has no axis, the most important first.

    Args:
        history: The history of the program.
        value: The holder of the value.
        dim: The dimension.
    """
    subject = history.subject
    sharding, shape = subject.sharding(value), subject.program.shapes[value]
    if sharding is not None and sharding.rank != len(shape or ()):  # on a single device
        return [Reason(ReasonKind.CLOSED)]
    if shape is not None and shape[dim] == 1:
        return [Reason(ReasonKind.SCALAR)]
    found = list(dict.fromkeys(_from_ops(history, value, dim)))
    if sharding is not None and not sharding.dims[dim].is_open:
        asked = next((one for one in found if one.asker is not None), Reason(ReasonKind.CLOSED))
        return [Reason(ReasonKind.CLOSED, asked.axis, asked.op, asked.asker)]
    found.sort(key=lambda one: _ORDER[one.kind])
    return found or [*_without_rule(history, value), Reason(ReasonKind.NOBODY)]


def _without_rule(history: History, value: int) -> Iterator[Reason]:
    """The ops without a rule that compute or use a value."""
    subject = history.subject
    program = subject.program
    if subject.main_result(value) is not None:
        return
    owner = program.owners[value]
    near = [owner] if owner >= 0 and value in program.results[owner] else []
    for op in dict.fromkeys([*near, *program.users[value]]):
        kind = program.kind(op)
        if kind.rule is None and op not in subject.erased and kind.name not in _NEVER and program.results[op]:
            yield Reason(ReasonKind.NO_RULE, op=op)


_NEVER = frozenset(
    (
        "func.func", "func.return", "func.call", "stablehlo.return", "sdy.return", "stablehlo.while", "stablehlo.case",
        "stablehlo.if", "sdy.named_computation", "sdy.manual_computation", "stablehlo.optimization_barrier",
        "sdy.sharding_group", "sdy.constant", "stablehlo.constant",
    )
)  # fmt: skip
"""Ops without a rule that do not stop propagation, because edges propagate for them."""


def _from_ops(history: History, value: int, dim: int) -> Iterator[Reason]:
    subject = history.subject
    for op, tensor in subject.readers.get(value, ()):
        rule = subject.rule(op)
        if rule is None or dim >= len(rule.tensors[tensor]):
            continue
        visit = _Visit(history, op)
        if visit.mesh is not None:
            for factor in rule.tensors[tensor][dim]:
                yield from visit.reasons(tensor, dim, factor)


def _front(factors: Sequence[int], factor: int) -> Sequence[int]:
    """The factors of a dimension that are major to one of them."""
    return factors[: factors.index(factor)]


class _Visit:
    """One op with the final shardings of its tensors."""

    def __init__(self, history: History, op: int) -> None:
        self.history = history
        self.op = op
        subject = history.subject
        rule = subject.rule(op)
        assert rule is not None
        self.rule = rule
        self.values = subject.tensors(op)
        shardings = [subject.sharding(value) if value >= 0 else None for value in self.values]
        view = subject.program.views.get(op)
        if view is not None:
            shardings[-1] = to_other_side(view, shardings[-1])
        self.shardings: Sequence[TensorSharding | None] = shardings
        found = common_mesh(shardings, subject.program.meshes)
        self.mesh: Mesh | None = None if found is None or found[1].is_single_device else found[1]

    def axes(self, tensor: int, factor: int) -> tuple[AxisRef, ...]:
        """The axes that a tensor has on a factor."""
        assert self.mesh is not None
        state = project(self.shardings[tensor], self.rule.tensors[tensor], self.rule.factor_sizes, self.mesh)
        found = state.factors.get(factor)
        return () if found is None else found.axes

    def place(self, tensor: int, factor: int) -> tuple[int, int]:
        """The value of a tensor and the dimension that has a factor."""
        mapping = self.rule.tensors[tensor]
        return self.values[tensor], next(dim for dim, factors in enumerate(mapping) if factor in factors)

    def reasons(self, tensor: int, dim: int, factor: int) -> Iterator[Reason]:
        """What prevents the axes that other tensors have on a factor from coming to one of its tensors."""
        askers = [
            (other, axes)
            for other, mapping in enumerate(self.rule.tensors)
            if other != tensor and any(factor in factors for factors in mapping) and (axes := self.axes(other, factor))
        ]
        if not askers:
            yield from self._overflows(tensor, factor)
            return
        other, (axis, *_) = askers[0]
        asker = self.place(other, factor)
        kind = self.history.subject.kind(self.op)
        is_operand = tensor < len(self.rule.operands)
        closed_way = Direction.FORWARD if is_operand else Direction.BACKWARD
        if factor in self.rule.blocked or (
            kind.priority is Priority.FIXED and kind.direction in (Direction.NONE, closed_way)
        ):
            yield Reason(ReasonKind.BLOCKED, axis, self.op, asker)
            return
        rival = next((one for one in askers if not one[1][0].overlaps(axis)), None)
        if rival is not None:
            yield Reason(
                ReasonKind.CONFLICT, axis, self.op, asker, self.place(rival[0], factor), Level.STRATEGY, rival[1][0]
            )
            return
        yield self._in_the_way(tensor, dim, factor, axis, asker)

    def _overflows(self, tensor: int, factor: int) -> Iterator[Reason]:
        """Axes of other tensors that do not divide the factor, or a factor major to it on the same dimension."""
        assert self.mesh is not None
        for other, mapping in enumerate(self.rule.tensors):
            dim = next((dim for dim, factors in enumerate(mapping) if factor in factors), None)
            if other == tensor or dim is None:
                continue
            state = project(self.shardings[other], mapping, self.rule.factor_sizes, self.mesh)
            for one in mapping[dim][: mapping[dim].index(factor) + 1]:
                found = state.factors.get(one)
                if found is not None and found.overflow:
                    yield Reason(ReasonKind.NOT_DIVISIBLE, found.overflow[0], self.op, (self.values[other], dim))

    def _in_the_way(self, tensor: int, dim: int, factor: int, axis: AxisRef, asker: tuple[int, int]) -> Reason:
        """What prevents an axis that all tensors with the factor agree on from coming to a tensor."""
        sharding = self.shardings[tensor]
        if any(axis.overlaps(one) for one in self.axes(tensor, factor)):  # outside a manual computation
            return Reason(ReasonKind.MANUAL, axis, self.op, asker)
        if sharding is not None:
            if any(axis.overlaps(one) for one in (*sharding.replicated, *sharding.unreduced)):
                return Reason(ReasonKind.REPLICATED, axis, self.op, asker)
            for other, given in enumerate(sharding.dims):
                held = next((one for one in given.axes if other != dim and one.overlaps(axis)), None)
                if held is not None:
                    winner = self.values[tensor], other
                    level = self.level(winner, held, asker, (axis, factor))
                    return Reason(ReasonKind.TAKEN, axis, self.op, asker, winner, level, held)
        assert self.mesh is not None
        factors = self.rule.tensors[tensor][dim]
        if factor != factors[-1] and gcd(self.rule.factor_sizes[factor], axis.length(self.mesh)) == 1:
            return Reason(ReasonKind.NOT_DIVISIBLE, axis, self.op, asker)
        rival = self._rival(tensor, dim, axis)
        if rival is not None:
            held = next(one for _, one in rival[1])
            at = self.values[rival[0]], next(dim for dim, one in rival[1])
            return Reason(
                ReasonKind.CONFLICT, axis, self.op, asker, at, self.level(at, held, asker, (axis, factor)), held
            )
        if any(
            axes_size(self.axes(tensor, one), self.mesh) < self.rule.factor_sizes[one]
            for one in _front(factors, factor)
        ):
            return Reason(ReasonKind.GAPS, axis, self.op, asker)
        count = len(self.rule.operands)
        if tensor < count and self.history.subject.kind(self.op).is_elementwise and not self.axes(count, factor):
            return Reason(ReasonKind.FOLLOWS, axis, self.op, asker, self.place(count, factor))
        return Reason(ReasonKind.DROPPED, axis, self.op, asker)

    def _rival(self, tensor: int, dim: int, axis: AxisRef) -> tuple[int, list[tuple[int, AxisRef]]] | None:
        """Another tensor whose use of the axis is the only obstacle, and the place of that use."""
        for other, sharding in enumerate(self.shardings):
            if other == tensor or sharding is None:
                continue
            used = [
                (place, one) for place, given in enumerate(sharding.dims) for one in given.axes if one.overlaps(axis)
            ]
            if used and self._moves_without(other, tensor, dim, axis):
                return other, used
        return None

    def _moves_without(self, other: int, tensor: int, dim: int, axis: AxisRef) -> bool:
        freed = [None if number == other else one for number, one in enumerate(self.shardings)]
        directions = (Direction.BOTH,) * len(self.rule.factor_sizes)
        is_elementwise = self.history.subject.kind(self.op).is_elementwise
        for strategy in Strategy:
            step = StepInput(self.rule, directions, strategy, False, is_elementwise)
            try:
                updates = dict(propagate_step(step, freed, self.history.subject.program.meshes))
            except InvalidShardingError:
                continue
            if tensor in updates and any(one.overlaps(axis) for one in updates[tensor].dims[dim].axes):
                return True
        return False

    def level(
        self, winner: tuple[int, int], held: AxisRef, loser: tuple[int, int], asked: tuple[AxisRef, int]
    ) -> Level:
        """What decided that one axis stays and another does not come.

        Args:
            winner: The value that keeps its axis, and the dimension.
            held: That axis.
            loser: The value whose axis does not come, and the dimension.
            asked: That axis, and the factor of the op along which it would propagate.
        """
        axis, factor = asked
        won, lost = self._arrival(winner, held), self._arrival(loser, axis)
        if won is None:
            return Level.GIVEN
        turn = self._given_priority(loser) if lost is None else lost.user_priority
        if turn != won.user_priority:
            return Level.USER_PRIORITY
        if max(self._first_round(factor), 0 if lost is None else lost.op_priority) > won.op_priority:
            return Level.OP_PRIORITY
        return Level.ORDER if lost is not None and lost.number > won.number else Level.STRATEGY

    def _given_priority(self, place: tuple[int, int]) -> int:
        sharding = self.history.subject.program.shardings[place[0]]
        return 0 if sharding is None else sharding.dims[place[1]].priority or 0

    def _first_round(self, factor: int) -> int:
        """The first op-priority round in which the op propagates along a factor."""
        kind = self.history.subject.kind(self.op)
        rounds = (directions(self.rule, kind.priority, kind.direction, round_)[factor] for round_ in range(ROUNDS))
        return next((round_ for round_, direction in enumerate(rounds) if direction is not Direction.NONE), ROUNDS)

    def _arrival(self, place: tuple[int, int], axis: AxisRef) -> Step | None:
        """The step that propagated an axis to a value; None if it was given there."""
        for one in self.history.placements.get(place[0], ()):
            if one.dim == place[1] and one.axis.overlaps(axis) and one.step > GIVEN_STEP:
                return self.history.subject.steps[one.step]
        return None
