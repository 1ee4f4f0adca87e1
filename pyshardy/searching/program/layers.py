"""Repeated layers of a program: the rounds of stretches of ops that repeat, forward, backward, in the optimizer.

Rounds that use the same arguments, or values of each other, are of the same layer. Layers are numbered from 0 along the
first stretch of a family; backward they come in the opposite order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Final, NamedTuple

from pyshardy.ir.attributes import Attributes
from pyshardy.ir.functions import entry_function
from pyshardy.ir.nodes import Op, Value, walk
from pyshardy.searching.autopartition.stretches import LEAST_ROUNDS, Stretch, find_stretches

_BY_ARGUMENT: Final = 10
"""The weight of a shared argument of two rounds, compared with a value of one that the other uses: that may also come
from the layer before."""


class PlacedStretch(NamedTuple):
    """A stretch whose round r belongs to the layer `base + sign * r`."""

    stretch: Stretch
    base: int
    sign: int

    def layer(self, round_: int) -> int:
        """The layer of a round."""
        return self.base + self.sign * round_


class Family(NamedTuple):
    """Layers of one kind.

    Attributes:
        stretches: Where their ops are.
        first: The first layer that is in all stretches.
        last: The last one.
    """

    stretches: tuple[PlacedStretch, ...]
    first: int
    last: int

    @property
    def size(self) -> int:
        """How many layers are in all stretches."""
        return self.last - self.first + 1


def top_ops(root: Op) -> list[Op]:
    """The ops of the main function, without what it ends with and what is inside of others."""
    block = entry_function(root).region.blocks[0]
    return [op for op in block if op is not block.last]


def find_families(root: Op) -> tuple[Family, ...]:
    """The families of repeated layers of a program, with at least four layers each."""
    ops = top_ops(root)
    stretches = find_stretches(_signatures(ops))
    if not stretches:
        return ()
    families = _Linker(ops, stretches).families()
    return tuple(family for family in families if family.size >= LEAST_ROUNDS)


def _signatures(ops: Sequence[Op]) -> list[int]:
    known: dict[Hashable, int] = {}
    attrs: dict[int, Hashable] = {}  # by identity; the ops keep their attributes alive
    return [known.setdefault(_signature(op, attrs), len(known)) for op in ops]


def _signature(op: Op, known: dict[int, Hashable]) -> Hashable:
    inside = tuple([(one.name, _attrs(one.attrs, known)) for one in walk(op)]) if op.regions else ()
    operands = tuple([value.type for value in op.operands])
    return op.name, _attrs(op.attrs, known), operands, tuple([value.type for value in op.results]), inside


def _attrs(attrs: Attributes, known: dict[int, Hashable]) -> Hashable:
    found = known.get(id(attrs))
    if found is None:
        found = known[id(attrs)] = tuple(attrs.items())
    return found


class _Linker:
    """Finds out which rounds of different stretches are of the same layer."""

    def __init__(self, ops: Sequence[Op], stretches: Sequence[Stretch]) -> None:
        self.ops, self.stretches = ops, stretches
        self.round_of: dict[Op, tuple[int, int]] = {}
        for number, (start, period, rounds) in enumerate(stretches):
            for place in range(start, start + period * rounds):
                self.round_of[ops[place]] = number, (place - start) // period
        self.family_of: dict[int, int] = {}
        self.placed: dict[int, PlacedStretch] = {}
        self.layer_of: dict[Value, tuple[int, int]] = {}
        """The family and the layer of an argument that one layer alone uses."""

    def families(self) -> Iterator[Family]:
        for number, stretch in enumerate(self.stretches):
            family, sign, base = self._place(number) or (number, 1, 0)
            self.family_of[number] = family
            self.placed[number] = PlacedStretch(stretch, base, sign)
            self._note_arguments(number)
        for family in dict.fromkeys(self.family_of.values()):
            placed = tuple(self.placed[number] for number, other in self.family_of.items() if other == family)
            ends = [sorted((one.layer(0), one.layer(one.stretch.rounds - 1))) for one in placed]
            yield Family(placed, max(end[0] for end in ends), min(end[1] for end in ends))

    def _place(self, number: int) -> tuple[int, int, int] | None:
        """The family, the direction and the first layer that what most rounds of a stretch use speaks for."""
        votes: Counter[tuple[int, int, int]] = Counter()
        rounds: dict[tuple[int, int, int], set[int]] = {}
        for op in self._ops(number):
            round_ = self.round_of[op][1]
            for value in op.operands:
                value = self._source(value)
                found, weight = self.layer_of.get(value), _BY_ARGUMENT
                maker = value.defining_op
                if maker is not None:
                    other, its_round = self.round_of.get(maker, (number, 0))
                    if other not in self.placed:
                        continue
                    found, weight = (self.family_of[other], self.placed[other].layer(its_round)), 1
                if found is not None:
                    for sign in (1, -1):
                        place = found[0], sign, found[1] - sign * round_
                        votes[place] += weight
                        rounds.setdefault(place, set()).add(round_)
        best = min(votes, key=lambda place: (-votes[place], place), default=None)
        return best if best is not None and 2 * len(rounds[best]) > self.stretches[number].rounds else None

    def _note_arguments(self, number: int) -> None:
        rounds: dict[Value, set[int]] = {}
        for op in self._ops(number):
            for value in map(self._source, op.operands):
                if value.defining_op is None:
                    rounds.setdefault(value, set()).add(self.round_of[op][1])
        for value, found in rounds.items():
            if len(found) == 1:
                layer = self.placed[number].layer(found.pop())
                self.layer_of.setdefault(value, (self.family_of[number], layer))

    def _source(self, value: Value) -> Value:
        """What a value is a copy of, if ops outside all rounds made it, as of weights that a step converts first."""
        op = value.defining_op
        while op is not None and op not in self.round_of and len(op.operands) == 1:
            value, op = op.operands[0], op.operands[0].defining_op
        return value

    def _ops(self, number: int) -> Sequence[Op]:
        stretch = self.stretches[number]
        return self.ops[stretch.start : stretch.end]
