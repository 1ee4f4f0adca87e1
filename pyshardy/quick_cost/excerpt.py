"""The excerpt of a program that must be partitioned in place: ops with reshards, and the ops around them.

All other ops are left out. Values that the excerpt uses from them become arguments. Values that they use from the
excerpt are operands of an extra op at the end of the block. Marks, which are ops without effect, stand for ops that are
left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyshardy.ir.nodes import Block, Op, Value
from pyshardy.ir.shardings import OWN_ATTRIBUTE
from pyshardy.ir.trip_counts import LOOP
from pyshardy.quick_cost.isolation import from_slice, handed_on, unlike
from pyshardy.quick_cost.pieces import Piece, with_shardings
from pyshardy.quick_cost.skeleton import BlockSkeleton, Entry, Skeleton
from pyshardy.quick_cost.versions import Shardings, Version
from pyshardy.rules.ops import ops_that

MARK = "pyshardy.left_out"
"""The mark for left-out ops of the block, up to the one with the number `INDEX`."""
INDEX = "index"
ENTRY = "pyshardy.entry"
"""Attribute of a loop or a conditional: the number of its entry."""
KEEPER = "stablehlo.custom_call"
KEEPS = "pyshardy.keeps"
"""Attribute of the op that keeps values."""
TARGET = min(ops_that(lambda traits: traits.takes_shards)).removeprefix("@")
"""The target of that op: a custom call without results that accepts shards."""
_WITH_BODY_SHARDINGS = frozenset(("sdy.manual_computation", "sdy.named_computation"))
"""Ops that also fix the shardings of their arguments."""
_UPSTREAM = 4
"""The number of ops to take before an op whose partitioning depends on its neighbours."""


class Excerpt:
    """Chooses the ops of the excerpt, and builds its module.

    Args:
        skeleton: The program.
        shardings: The sharding of every value.
        results: The shardings that the function must return.
        versions: The version of every op that can be left out.
        keeping: The attributes of the ops that keep values: `TARGET` is what they call, and they have an effect.
        meshes: The names of the meshes in use.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        shardings: Shardings,
        results: Shardings,
        versions: Mapping[Entry, Version | None],
        keeping: Mapping[str, object],
        meshes: Collection[str],
    ) -> None:
        self.skeleton, self.shardings, self.versions = skeleton, shardings, versions
        self.results = results
        self.keeping = keeping
        self.taken: set[Entry] = set()
        self.outside: set[int] = set()
        """The values that left-out ops use."""
        self.entries: list[Entry] = []
        """The loops and conditionals, by the number on their copies."""
        self.kept: dict[BlockSkeleton, list[int]] = {}
        """The values that each block keeps for left-out ops."""
        self.mapping: dict[Value, Value] = {}
        self.arguments: dict[int, Value] = {}
        """The arguments that stand for values of left-out ops."""
        self._choose(skeleton.body, self.results)
        self.piece = Piece(skeleton.root, meshes)
        self._build()

    # Choosing

    def _choose(self, block: BlockSkeleton, wanted: Shardings) -> None:
        """Choose ops of a block that returns values with these shardings."""
        for entry in block.entries:
            if entry.blocks:
                self._choose_structure(entry)
            elif self.versions[entry] is None:
                self._take(entry, 1 if entry.static is not None else _UPSTREAM)
                for value in (*entry.operands, *entry.results):
                    self._add_users(value)
        for value in unlike(block.returned, wanted, self.shardings):
            self._take_maker(value, 1)

    def _choose_structure(self, entry: Entry) -> None:
        self.taken.add(entry)
        for inner, wanted in zip(entry.blocks, handed_on(entry, self.shardings)):
            self._choose(inner, wanted)
        if entry.op.name == LOOP:
            for value in unlike(entry.operands, [self.shardings[value] for value in entry.results], self.shardings):
                self._take_maker(value, 1)

    def _take(self, entry: Entry, depth: int) -> None:
        """Take an op, and up to so many ops before it that compute its operands."""
        self._add(entry)
        for value in (*entry.operands, *entry.captured):
            self._take_maker(value, depth)

    def _take_maker(self, value: int, depth: int) -> None:
        maker = self.skeleton.maker.get(value)
        if maker is None or depth == 0:
            return
        self._add(maker)
        for operand in maker.operands:
            self._take_maker(operand, depth - 1)
        self.taken.update(from_slice(maker, self.skeleton))

    def _add_users(self, value: int) -> None:
        for user in self.skeleton.users.get(value, ()):
            if not user.blocks:  # these are taken anyway
                self._add(user)

    def _add(self, entry: Entry) -> None:
        """Take an op with its constants; if reshards surround it, also the ops that compute its operands."""
        if entry in self.taken:
            return
        self.taken.add(entry)
        constants = self.skeleton.constants
        self.taken.update([self.skeleton.maker[value] for value in entry.operands if value in constants])
        version = self.versions[entry]
        if version is not None and not version.is_independent:
            self._take(entry, 1)

    # Building

    def _build(self) -> None:
        piece, skeleton = self.piece, self.skeleton
        for number in skeleton.body.arguments:
            value = skeleton.values[number]
            self.mapping[value] = piece.argument(value.type, self.shardings[number], value.place)
        for entry in skeleton.body.walk():
            if entry not in self.taken:
                self.outside.update(entry.operands)
        self._fill(skeleton.body, piece.block)
        returned = [self._value(number) for number in skeleton.body.returned]
        self._keep(skeleton.body, piece.block)
        piece.finish(returned, self.results, skeleton.body.node.terminator.place)

    def _fill(self, block: BlockSkeleton, target: Block) -> None:
        is_behind = False
        for entry in block.entries:
            if entry not in self.taken:
                is_behind = True
                continue
            if is_behind:
                target.append(Op(MARK, attrs={INDEX: entry.index}))
                is_behind = False
            target.append(self._copy(entry))
        if is_behind:
            target.append(Op(MARK, attrs={INDEX: block.entries[-1].index + 1}))

    def _copy(self, entry: Entry) -> Op:
        for number in (*entry.operands, *entry.captured):
            self._value(number)
        op = entry.op
        if not entry.blocks:
            return self._sharded(self._mapped(op.clone(self.mapping), entry), entry)
        copy = Op(
            op.name,
            [self.mapping[value] for value in op.operands],
            [result.type for result in op.results],
            op.attrs,
            len(op.regions),
            op.place,
        )
        self.mapping.update(zip(op.results, copy.results))
        copy.set_attr(ENTRY, len(self.entries))
        self.entries.append(entry)
        for inner, region in zip(entry.blocks, copy.regions):
            block = region.add_block()
            for number in inner.arguments:
                value = self.skeleton.values[number]
                self.mapping[value] = block.add_arg(value.type, value.place)
            self._fill(inner, block)
            end = inner.node.terminator
            returned = [self._value(number) for number in inner.returned]
            self._keep(inner, block)
            block.append(Op(end.name, returned, attrs=end.attrs, location=end.place))
        return self._sharded(copy, entry)

    def _mapped(self, copy: Op, entry: Entry) -> Op:
        """A copy whose results are also used in the place of others."""
        for number in entry.results:
            self._map(number, self.mapping[self.skeleton.values[number]])
        return copy

    def _map(self, number: int, found: Value) -> None:
        values = self.skeleton.values
        self.mapping.update([(values[one], found) for one in (number, *self.skeleton.twins.get(number, ()))])

    def _sharded(self, copy: Op, entry: Entry) -> Op:
        if copy.name in OWN_ATTRIBUTE:
            copy.set_attr(OWN_ATTRIBUTE[copy.name], self.shardings[entry.results[0]])
            return copy
        if copy.name in _WITH_BODY_SHARDINGS:
            return copy
        return with_shardings(copy, [self.shardings[number] for number in entry.results])

    def _value(self, number: int) -> Value:
        """The value that stands for another: its copy, or an argument if the op that computes it is left out."""
        value = self.skeleton.values[number]
        found = self.mapping.get(value)
        if found is None:
            found = self.piece.argument(value.type, self.shardings[number])
            self.arguments[number] = found
            self._map(number, found)
        return found

    def _keep(self, block: BlockSkeleton, target: Block) -> None:
        """Make the values that left-out ops use operands of an op at the end of the block."""
        found = [
            number
            for entry in block.entries
            if entry in self.taken
            for number in entry.results
            if number in self.outside
        ]
        self.kept[block] = found
        if found:
            values = [self.mapping[self.skeleton.values[number]] for number in found]
            target.append(Op(KEEPER, values, attrs={**self.keeping, KEEPS: True}))
