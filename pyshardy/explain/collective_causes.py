"""Finds the op of a traced program that needs a collective, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.needs import BORDERS, RESHARD, Need
from pyshardy.core.text import quote
from pyshardy.costing.program import RAGGED
from pyshardy.explain.conflicts import has_text, mismatch_text
from pyshardy.explain.mismatches import Mismatch, clashing, mismatches, split_dims
from pyshardy.explain.names import Names, place_text
from pyshardy.explain.subject import Label
from pyshardy.explain.why import Why
from pyshardy.propagation.origins import CONSTRAINT
from pyshardy.rules.rule import FactorKind

_COLLECTIVES = frozenset(
    f"stablehlo.{name}"
    for name in (
        "all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "reduce_scatter",
    )
)  # fmt: skip
_NAMELESS = frozenset(("func.func", "func.return", "stablehlo.constant", "sdy.constant"))
_CALL = "sdy.named_computation"
_RESHARD = "sdy.reshard"
_SLICE = "stablehlo.slice"
_CALLS = "stablehlo.custom_call"
_WHILE_PROPAGATING = {"func.call": _CALL, _RESHARD: CONSTRAINT}
"""The names of ops during propagation, if they differ."""
_ADDING = ("all_reduce", "reduce_scatter")


class CollectiveFacts(Protocol):
    """The part of a collective that is used here; `report.traffic.CollectiveRow` provides it."""

    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def axes(self) -> tuple[str, ...] | None: ...  # noqa: D102
    @property
    def sent_bytes_per_device(self) -> int: ...  # noqa: D102
    @property
    def times(self) -> int: ...  # noqa: D102
    @property
    def is_lower_bound(self) -> bool: ...  # noqa: D102
    @property
    def op(self) -> str | None: ...  # noqa: D102
    @property
    def cause(self) -> str | None: ...  # noqa: D102
    @property
    def need(self) -> Need | None: ...  # noqa: D102
    @property
    def windowed(self) -> str | None: ...  # noqa: D102
    @property
    def source(self) -> tuple[str, int, int] | None: ...  # noqa: D102
    @property
    def user_source(self) -> tuple[str, int, int] | None: ...  # noqa: D102


class Cause(NamedTuple):
    """The cause of a collective in a traced program.

    Attributes:
        reason: The cause in words.
        operand: The value that is resharded or summed.
        places: The values and dimensions with conflicting axes, and these axes.
        mismatch: The conflict, if there is one.
        op: The op that needs it; None for the return, or if unknown.
    """

    reason: str
    operand: int | None = None
    places: tuple[tuple[int, int, Axes], ...] = ()
    mismatch: Mismatch | None = None
    op: int | None = None


class CauseFinder:
    """Finds the cause of each collective of a traced program.

    The location of a collective has the name and line of the op that needs it, and the operand or result. If several
    ops have one name and line, as in unrolled layers, collectives and ops are paired in program order.

    Args:
        why: Explains the values of the propagated program.
        of_compiler: Whether a compiler made the collectives. Their locations name one op of the program: the one that
            needs the value, or the one that makes it.
    """

    def __init__(self, why: Why, of_compiler: bool = False) -> None:
        self.why = why
        self.of_compiler = of_compiler
        self.names: Names = why.names
        self._meetings: dict[tuple[Any, ...], list[Mismatch]] = {}
        self._sums: dict[tuple[Any, ...], list[int]] = {}
        self._moving: dict[tuple[Any, ...], list[int]] = {}
        self._ops: dict[tuple[Any, ...], list[int]] = {}
        self._near: dict[tuple[Any, ...], list[Mismatch]] = {}
        self._of_op: dict[int, list[Mismatch]] = {}
        subject = why.subject
        for mismatch in mismatches(why):
            self._meetings.setdefault(self._key_of(mismatch), []).append(mismatch)
            self._of_op.setdefault(mismatch.op, []).append(mismatch)
            if of_compiler:
                for near in self._places_near(mismatch):
                    self._near.setdefault(near, []).append(mismatch)
        for op in range(subject.op_count):
            rule = subject.rule(op)
            if op not in subject.erased and subject.program.kind(op).name not in _NAMELESS:
                self._ops.setdefault(_place(self.names.label(op))[1:], []).append(op)
            if rule is None or op in subject.erased:
                continue
            if any(True for _ in split_dims(why, op, FactorKind.REDUCTION)):
                self._sums.setdefault(_place(self.names.label(op)), []).append(op)
            if any(True for _ in split_dims(why, op, FactorKind.PERMUTATION)):
                self._moving.setdefault(_place(self.names.label(op))[1:], []).append(op)

    def _key_of(self, mismatch: Mismatch) -> tuple[Any, ...]:
        """The cause for a conflict."""
        subject = self.why.subject
        if mismatch.op >= subject.op_count:
            index = subject.main_result(subject.tensors(mismatch.op)[-1])
            return "operand", index, False, "func.return"
        program = subject.program
        if program.kind(mismatch.op).name.endswith("data_flow_edge"):
            owner = program.operands[mismatch.op][0]
            around = program.owners[owner]
            results, name = program.results[around], program.kind(around).name
            if owner not in results:
                side = ("operand", self.names.argument_number(owner), False)
            elif name == "stablehlo.optimization_barrier" or (name == "stablehlo.while" and mismatch.tensor == 0):
                side = ("operand", results.index(owner), False)
            else:
                side = ("result", results.index(owner), True)
            return (*side, *_place(self.names.label(around)))
        rule = subject.rule(mismatch.op)
        assert rule is not None
        place = _place(self.names.label(mismatch.op))
        count = len(rule.operands)
        if mismatch.tensor >= count:
            return ("result", mismatch.tensor - count, False, *place)
        return ("operand", mismatch.tensor, False, *place)

    def causes(self, rows: Sequence[CollectiveFacts]) -> list[Cause]:
        """The causes of collectives, in order."""
        alike: dict[tuple[Any, ...], list[int]] = {}
        for number, row in enumerate(rows):
            kind = (row.kind, row.axes) if self.of_compiler else ()  # the place alone says nothing of these
            alike.setdefault((row.cause, row.op, row.source, *kind), []).append(number)
        found: dict[int, Cause] = {}
        for numbers in alike.values():
            candidates = self._candidates(rows[numbers[0]])
            for place, number in enumerate(numbers):
                found[number] = _pick(candidates, place, len(numbers)) or self._unknown(rows[number])
        return [found[number] for number in range(len(rows))]

    def _places_near(self, mismatch: Mismatch) -> Iterator[tuple[Any, ...]]:
        """The places of the op that needs a value, and of the op that makes it."""
        subject = self.why.subject
        makers = [] if mismatch.value < 0 else [subject.program.owners[subject.holder(mismatch.value)]]
        for op in (mismatch.op, *makers):
            if 0 <= op < subject.op_count:
                yield _place(self.names.label(op))[1:]

    def _around(self, row: CollectiveFacts, at: tuple[Any, ...]) -> list[Cause]:
        """The candidates for a collective of a compiler: first the sums, if it adds up, then the reshards."""
        meetings = [self._of_meeting(one) for one in self._near.get(at, ())]
        along = [one for one in meetings if any(_is_along(axis, row) for _, _, axes in one.places for axis in axes)]
        sums = (
            [self._of_sum(op, "sum", row) for place, ops in self._sums.items() if place[1:] == at for op in ops]
            if row.kind in _ADDING
            else []
        )
        moving = [self._of_moving(one) for one in self._moving.get(at, ())]
        return sums or along or meetings or moving

    def _candidates(self, row: CollectiveFacts) -> list[Cause]:
        at = row.op, *(row.source or (None, 0, 0))
        if self.of_compiler:
            return self._around(row, at)
        need = row.need
        if need is None:
            return [self._of_moving(one) for one in self._moving.get(at, ())]
        op = _WHILE_PROPAGATING.get(need.op, need.op)
        place = (op,) if op == "func.return" else (op, row.op, *(row.source or (None, 0, 0)))
        if need.what == RESHARD:
            key = ("result" if need.is_result else "operand", need.number or 0, need.is_in_body, *place)
            met = self._meetings.get(key) or self._beside(row, at)
            return [self._of_meeting(one) for one in met]
        if need.what == BORDERS:
            return [self._of_moving(one) for one in self._moving.get(at, ())]
        return [self._of_sum(one, need.what, row) for one in self._sums.get(place, ())]

    def _beside(self, row: CollectiveFacts, at: tuple[Any, ...]) -> list[Mismatch]:
        """The conflicts of the ops that feed the ops at a place: a constraint reshards its operand."""
        program = self.why.subject.program
        makers = dict.fromkeys(
            program.owners[self.why.subject.holder(value)]
            for op in self._ops.get(at, ())
            for value in program.operands[op]
            if value >= 0
        )
        found = [one for op in makers for one in self._of_op.get(op, ())]
        return [
            one for one in found if any(_is_along(axis, row) for _, _, axes in clashing(self.why, one) for axis in axes)
        ]

    def _of_meeting(self, mismatch: Mismatch) -> Cause:
        op = mismatch.op if mismatch.op < self.why.subject.op_count else None
        text = mismatch_text(self.why, mismatch)
        return Cause(text, mismatch.value, tuple(clashing(self.why, mismatch)), mismatch, op)

    def _of_sum(self, op: int, word: str, row: CollectiveFacts) -> Cause:
        places = list(dict.fromkeys(split_dims(self.why, op, FactorKind.REDUCTION)))
        along = [one for one in places if any(_is_along(axis, row) for axis in one[2])]
        places = along or places
        both = " and ".join(has_text(self.names.value(value), dim, axes) for value, dim, axes in places)
        reason = f"{self.names.op(op)} takes the {word} over a dimension that is split: {both}"
        return Cause(reason, places[0][0], tuple(places), op=op)

    def _of_moving(self, op: int) -> Cause:
        places = list(dict.fromkeys(split_dims(self.why, op, FactorKind.PERMUTATION)))
        both = " and ".join(has_text(self.names.value(value), dim, axes) for value, dim, axes in places)
        is_slice = self.why.subject.program.kind(op).name == _SLICE
        cause = "its piece does not begin and end where shards do" if is_slice else "it moves along a split dimension"
        reason = f"{self.names.op(op)} needs elements that lie on other devices, because {cause}: {both}"
        advice = self._apart(op, places[0][1]) if is_slice else ""
        return Cause(reason + advice, places[0][0], tuple(places), op=op)

    def _apart(self, op: int, dim: int) -> str:
        """Advice that keeps the pieces of a dimension on their devices, if they are equal."""
        program = self.why.subject.program
        whole, piece = program.shapes[program.operands[op][0]], program.shapes[program.results[op][0]]
        if not whole or not piece or whole[dim] % piece[dim]:
            return ""
        shape = [*whole[:dim], whole[dim] // piece[dim], *piece[dim:]]
        return f"; pieces along a dimension of their own, as in {shape}, stay on their devices"

    def _unknown(self, row: CollectiveFacts) -> Cause:
        """The cause of a collective without a conflict: the program itself, or an op that cannot run on shards."""
        ops = self._ops.get((row.op, *(row.source or (None, 0, 0))), ())
        asked = {_CALLS} if row.kind == RAGGED else _COLLECTIVES
        own = next((op for op in ops if self.names.label(op).name in asked), None)
        if row.need is None and own is not None:
            return Cause(f"the program asks for it: {self.names.op(own)} is a collective", op=own)
        if self.of_compiler and row.kind not in _ADDING:  # it may be at the op that makes what another one needs whole
            ops = [*self._without_rule(ops), *ops]
        found = [one for one in map(self._needing(row), ops) if one is not None]
        if found:
            return found[0]
        text = (
            f"`{(row.op or '').rpartition('/')[2] or row.kind}`"
            f"{place_text(Label('', None, None, *(row.user_source or row.source or ())))}"
        )
        return Cause(f"{text} needs elements that lie on other devices" + (f": {row.cause}" if row.cause else ""))

    def _without_rule(self, ops: Sequence[int]) -> Iterator[int]:
        """The custom calls without a rule among some ops and the users of their results."""
        program = self.why.subject.program
        users = [user for op in ops for value in program.results[op] for user in program.users[value]]
        for op in (*ops, *users):
            if (
                0 <= op < self.why.subject.op_count
                and program.kind(op).name == _CALLS
                and program.kind(op).rule is None
            ):
                yield op

    def _split_along(self, row: CollectiveFacts, values: Iterable[int]) -> list[tuple[int, int, Axes]]:
        """The values and dimensions with axes along which a collective communicates."""
        subject = self.why.subject
        return [
            (subject.holder(value), dim, given.axes)
            for value in values
            if value >= 0 and (sharding := subject.sharding(value)) is not None
            for dim, given in enumerate(sharding.dims)
            if any(_is_along(axis, row) for axis in given.axes)
        ]

    def _needing(self, row: CollectiveFacts) -> Callable[[int], Cause | None]:
        """The cause for an op that needs data from other shards."""

        def cause(op: int) -> Cause | None:
            program = self.why.subject.program
            values = [*program.operands[op], *program.results[op]]
            need = row.need
            if need is not None:
                if program.kind(op).name not in (need.op, _WHILE_PROPAGATING.get(need.op)):
                    return None
                side = program.results[op] if need.is_result else program.operands[op]
                values = list(side[need.number or 0 :][:1])
            if program.kind(op).name == _RESHARD:
                text = f"the program asks for it: {self.names.op(op)} moves {self.names.value(values[0])}"
                return Cause(text, values[0], op=op)
            what, places = "cannot run on the shards alone", self._split_along(row, values)
            if not places and need is not None and need.is_result:
                what, places = "computes its result in shards", self._split_along(row, program.operands[op])
            if not places:
                return None
            has = " and ".join(
                dict.fromkeys(has_text(self.names.value(value), dim, axes) for value, dim, axes in places)
            )
            if program.kind(op).name == _CALL:
                what = "shares its function with calls that take its arguments otherwise"
            return Cause(f"{self.names.op(op)} {what}: {has}", places[0][0], tuple(places), op=op)

        return cause


def _is_along(axis: AxisRef, row: CollectiveFacts) -> bool:
    """Whether a collective communicates along an axis or a part of it."""
    return any(one.startswith(quote(axis.name)) for one in row.axes or ())


def _place(label: Label) -> tuple[Any, ...]:
    return label.name, label.scope, *label.places[-1]


def _pick(candidates: Sequence[Cause], place: int, count: int) -> Cause | None:
    """The cause of one of several collectives with the same name and line, in order.

    A reshard may need several collectives, and several ops may share one.
    """
    if len(candidates) > count:
        candidates = list({(one.operand, one.reason): one for one in candidates}.values())
    if not candidates:
        return None
    return candidates[min(place * len(candidates) // count, len(candidates) - 1)]
