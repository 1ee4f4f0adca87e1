"""Repeated layers of a program: the rounds of stretches of ops that repeat, forward, backward, in the optimizer.

Rounds that use the same arguments, or values of each other, are of the same layer. Layers are numbered from 0 along the
first stretch of a family; backward they come in the opposite order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Final, NamedTuple

from pyshardy.ir.attributes import Attributes
from pyshardy.ir.functions import entry_function
from pyshardy.ir.nodes import Op, Value, walk
from pyshardy.searching.autopartition.stretches import LEAST_ROUNDS, Stretch, find_stretches
from pyshardy.searching.program.spans import Joined, Layer, Span, joined, spans

_BY_ARGUMENT: Final = 10
"""The weight of an argument that two rounds share. A value of one round that the other uses counts once, as it may come
from the layer before."""
_MOST_JOINED: Final = 16
"""The most rounds that are taken for one layer, such as the updates of its equal weights."""
_MOST_OUTSIDE: Final = 0.1
"""The most ops outside that may use results of a single layer, as a share of the ops of the layer."""


class LayerOrder(NamedTuple):
    """How the rounds of a stretch are put in the order of layers. Flax updates `block_10` before `block_2`.

    Attributes:
        stretch: The stretch.
        rounds: The numbers of its rounds, in the order of layers.
    """

    stretch: Stretch
    rounds: tuple[int, ...]

    def put_in_order(self, ops: list[Op]) -> None:
        """Move the ops of the rounds in the list of all ops."""
        start, period, _ = self.stretch
        ops[start : self.stretch.end] = [
            op for round_ in self.rounds for op in ops[start + round_ * period : start + (round_ + 1) * period]
        ]


class PlacedStretch(NamedTuple):
    """A stretch whose round r belongs to the layer `base + sign * r`.

    Its place is that in the list of ops once these are in the order of layers, if `order` says one.
    """

    stretch: Stretch
    base: int
    sign: int
    order: LayerOrder | None = None

    def layer(self, round_: int) -> int:
        """The layer of a round."""
        return self.base + self.sign * round_

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last of its layers."""
        one, other = self.layer(0), self.layer(self.stretch.rounds - 1)
        return min(one, other), max(one, other)

    def part(self, first: int, last: int) -> PlacedStretch:
        """The part of it that is of some of its layers.

        >>> PlacedStretch(Stretch(100, 10, 5), 7, -1).part(4, 6)
        PlacedStretch(stretch=Stretch(start=110, period=10, rounds=3), base=6, sign=-1, order=None)
        """
        round_ = (first if self.sign > 0 else last) * self.sign - self.base * self.sign
        stretch = self.stretch
        part = Stretch(stretch.start + round_ * stretch.period, stretch.period, last - first + 1)
        return PlacedStretch(part, self.layer(round_), self.sign, self.order)


class LayerFamily(NamedTuple):
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


def ops_in_layer_order(root: Op, families: Iterable[LayerFamily]) -> list[Op]:
    """The ops of the main function as the places of stretches count them."""
    ops = top_ops(root)
    for order in dict.fromkeys(placed.order for family in families for placed in family.stretches):
        if order is not None:
            order.put_in_order(ops)
    return ops


def find_families(root: Op) -> tuple[LayerFamily, ...]:
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
        self.ops, self.stretches, self.top = list(ops), stretches, frozenset(ops)
        self.repeated = {op for stretch in stretches for op in ops[stretch.start : stretch.end]}
        self.placed: list[PlacedStretch] = []
        self.family_of: list[int] = []
        self.piece_of: list[Stretch] = []
        """The stretch that a placed one is a part of."""
        self.round_of: dict[Op, tuple[int, int]] = {}
        """The number of the placed stretch that an op is in, and its round there."""
        self.layer_of: dict[Value, Layer] = {}
        """The layer of an argument that one layer alone uses."""

    def families(self) -> Iterator[LayerFamily]:
        for stretch in self.stretches:
            for placed, family in self._pieces(stretch) or [(PlacedStretch(stretch, 0, 1), len(self.placed))]:
                self.piece_of.append(stretch)
                self._place(placed, family)
        whole = [number for number in range(len(self.placed)) if not self._loses_work(number)]
        for family in dict.fromkeys(self.family_of[number] for number in whole):
            numbers = [number for number in whole if self.family_of[number] == family]
            members = tuple(self.placed[number] for number in numbers)
            if self._is_half(members):
                continue
            first, last = max(one.ends[0] for one in members), min(one.ends[1] for one in members)
            if last - first + 1 >= LEAST_ROUNDS:
                yield LayerFamily(members, first, last)
            else:
                yield from _parts([(self.piece_of[number], self.placed[number]) for number in numbers])

    def _place(self, placed: PlacedStretch, family: int) -> None:
        number = len(self.placed)
        self.placed.append(placed)
        self.family_of.append(family)
        for round_ in range(placed.stretch.rounds):
            self.round_of |= dict.fromkeys(self._round(placed.stretch, round_), (number, round_))
        self._note_arguments(number)

    def _pieces(self, stretch: Stretch) -> list[tuple[PlacedStretch, int]]:
        """The stretch, or parts of it, each with its family, by what its ops use; none if that tells nothing.

        An optimizer updates several equal weights of one layer after the other, or the layers of two models: then
        several rounds in a row are of one layer, or rounds are of two families.
        """
        votes = [self._votes(stretch, round_) for round_ in range(stretch.rounds)]
        if not any(votes):
            return []
        counts = range(1, min(_MOST_JOINED, stretch.rounds // LEAST_ROUNDS) + 1)
        ways = [joined(stretch, votes, count, shift) for count in counts for shift in range(count)]
        for way in ways:
            found = spans(way.votes)
            if len(found) == 1 and 2 * (found[0].last - found[0].first + 1) > way.stretch.rounds:
                one = found[0] if way.together > 1 else found[0]._replace(first=0, last=len(votes) - 1)
                return _placed(way.stretch, [one])
        for way in ways:
            order = self._layer_order(way)
            found = [] if order is None else spans([way.votes[round_] for round_ in order.rounds])
            if order is not None and found:
                order.put_in_order(self.ops)
                return _placed(way.stretch, found, order)
        unshifted = [way for way in ways if way.stretch.start == stretch.start]
        return next((_placed(way.stretch, found) for way in unshifted if (found := spans(way.votes))), [])

    def _layer_order(self, way: Joined) -> LayerOrder | None:
        """The order of layers, if every round is of a layer of its own and none waits for another."""
        stretch, votes = way.stretch, way.votes
        layers = [max(found, key=lambda one: (found[one], one)) for found in votes if found]
        if len(set(layers)) < len(votes):
            return None
        round_of = {op: round_ for round_ in range(stretch.rounds) for op in self._round(stretch, round_)}
        for op, round_ in round_of.items():
            for value in op.operands:
                maker = value.defining_op
                if maker is not None and round_of.get(maker, round_) != round_:
                    return None
        rounds = sorted(range(stretch.rounds), key=lambda round_: layers[round_])
        return LayerOrder(stretch, tuple(rounds))

    def _votes(self, stretch: Stretch, round_: int) -> Counter[Layer]:
        """The layers of the values that a round uses, with their votes."""
        found: Counter[Layer] = Counter()
        for op in self._round(stretch, round_):
            for value in map(self._source, op.operands):
                maker = value.defining_op
                if maker is None and value in self.layer_of:
                    found[self.layer_of[value]] += _BY_ARGUMENT
                elif maker is not None and maker in self.round_of:
                    number, its_round = self.round_of[maker]
                    found[Layer(self.family_of[number], self.placed[number].layer(its_round))] += 1
        return found

    def _note_arguments(self, number: int) -> None:
        stretch = self.placed[number].stretch
        rounds: dict[Value, set[int]] = {}
        for round_ in range(stretch.rounds):
            for op in self._round(stretch, round_):
                for value in map(self._source, op.operands):
                    if value.defining_op is None:
                        rounds.setdefault(value, set()).add(round_)
        for value, found in rounds.items():
            if len(found) == 1:
                layer = self.placed[number].layer(found.pop())
                self.layer_of.setdefault(value, Layer(self.family_of[number], layer))

    def _loses_work(self, number: int) -> bool:
        """Whether most rounds use something that is made for them alone, outside of their layer.

        If the rounds are left out, nothing uses it, and the work of making it is lost. Examples are gradients of
        weights whose updates are left out.
        """
        family, stretch = self.family_of[number], self.placed[number].stretch
        losing = 0
        for round_ in range(stretch.rounds):
            own = set(self._round(stretch, round_))
            losing += any(self._is_made_for(value, own, family) for op in own for value in op.operands)
        return 2 * losing > stretch.rounds

    def _is_made_for(self, value: Value, own: set[Op], family: int) -> bool:
        """Whether ops outside a family make a tensor for these ops alone, of more than one tensor."""
        chain, maker = set(own), value.defining_op
        while (
            maker is not None and maker not in own and value.type.shape and all(one in chain for one in value.users())
        ):
            if maker in self.round_of and self.family_of[self.round_of[maker][0]] == family:
                return False
            if len(maker.operands) != 1:
                return bool(maker.operands)
            chain.add(maker)
            value, maker = maker.operands[0], maker.operands[0].defining_op
        return False

    def _is_half(self, members: Sequence[PlacedStretch]) -> bool:
        """Whether much of the work of each layer is outside of it: a backward pass without rounds, for example.

        With fewer layers that work would stay as it is. It would keep its operands in memory for longer than in the
        whole program.
        """
        layer_of = {
            op: one.layer(round_)
            for one in members
            for round_ in range(one.stretch.rounds)
            for op in self._round(one.stretch, round_)
        }
        served: dict[Op, set[int]] = {}
        for op, layer in layer_of.items():
            for user in (user for value in op.results if value.type.shape for user in value.users()):
                if user not in layer_of and user not in self.round_of and user in self.top:
                    served.setdefault(user, set()).add(layer)
        sizes = Counter(layer_of.values())
        alone = Counter(next(iter(layers)) for layers in served.values() if len(layers) == 1)
        return median(alone[layer] / size for layer, size in sizes.items()) > _MOST_OUTSIDE

    def _source(self, value: Value) -> Value:
        """The original of a value that ops outside all rounds copied, such as converted weights; else the value."""
        op = value.defining_op
        while op is not None and op not in self.repeated and len(op.operands) == 1:
            value, op = op.operands[0], op.operands[0].defining_op
        return value

    def _round(self, stretch: Stretch, round_: int) -> Sequence[Op]:
        start = stretch.start + round_ * stretch.period
        return self.ops[start : start + stretch.period]


def _parts(pieces: Sequence[tuple[Stretch, PlacedStretch]]) -> Iterator[LayerFamily]:
    """Layers that are in a piece of each stretch, as families of their own.

    The optimizer of flax updates `block_10` before `block_2`: layers 2 to 9 and those from 10 on are in two pieces.

    Args:
        pieces: The pieces, each with the stretch that it is of.
    """
    wanted = {one for one, _ in pieces}
    cuts = sorted({end for _, piece in pieces for end in (piece.ends[0], piece.ends[1] + 1)})
    for first, next_one in pairwise(cuts):
        last = next_one - 1
        found = [(one, piece) for one, piece in pieces if piece.ends[0] <= first and last <= piece.ends[1]]
        if {one for one, _ in found} == wanted:
            yield LayerFamily(tuple(piece.part(first, last) for _, piece in found), first, last)


def _placed(
    stretch: Stretch, found: Sequence[Span], order: LayerOrder | None = None
) -> list[tuple[PlacedStretch, int]]:
    """The parts of a stretch with some of its rounds, each with the number of its family."""
    return [
        (PlacedStretch(one.part(stretch), one.base + one.sign * one.first, one.sign, order), one.family)
        for one in found
    ]
