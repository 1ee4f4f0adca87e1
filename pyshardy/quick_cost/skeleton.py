"""A program with final shardings, read once, so that it can be priced many times under other shardings."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field

from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.attributes import PART
from pyshardy.ir.functions import SHARDING
from pyshardy.ir.nodes import Block, Op, Value, walk
from pyshardy.ir.opspec import CONTEXT_FACTS
from pyshardy.ir.purity import is_pure
from pyshardy.ir.shardings import get_shardings
from pyshardy.rules.properties import ELEMENTWISE, PROGRAM_CONSTANTS

STRUCTURE = frozenset(("stablehlo.while", "stablehlo.case", "stablehlo.if"))
"""Ops of which the ops inside are looked at one by one."""
_ON_ITS_OWN = frozenset(("sdy.manual_computation", "sdy.named_computation", "stablehlo.async_start"))
"""Ops that are taken with all they hold."""
_OF_THE_PLACE = frozenset((SHARDING, PART))
"""Attributes that say nothing of what an op does."""


class Entry:
    """One op of a block.

    Attributes:
        op: Its node, which nobody changes.
        index: Its place in the block, without ops that nothing uses.
        static: The number that ops share of the same name, attributes, types and bodies; None for an op of which the
            surroundings count.
        operands: The numbers of the values it uses.
        results: The numbers of its results.
        blocks: What a loop or a conditional holds.
        captured: The numbers of other values from outside that its regions use.
    """

    __slots__ = ("op", "index", "static", "operands", "results", "blocks", "captured")

    def __init__(self, op: Op, index: int) -> None:
        self.op, self.index = op, index
        self.static: int | None = None
        self.operands: tuple[int, ...] = ()
        self.results: tuple[int, ...] = ()
        self.blocks: tuple[BlockSkeleton, ...] = ()
        self.captured: tuple[int, ...] = ()


@dataclass(slots=True, eq=False)
class BlockSkeleton:
    """The ops of a block that something uses, in order.

    Attributes:
        node: The block.
        arguments: The numbers of its arguments.
        entries: The ops, without the one that returns.
        returned: The numbers of what it returns.
    """

    node: Block
    arguments: tuple[int, ...] = ()
    entries: list[Entry] = field(default_factory=list)
    returned: tuple[int, ...] = ()

    def walk(self) -> Iterator[Entry]:
        """All ops, every one before those inside of it."""
        for entry in self.entries:
            yield entry
            for block in entry.blocks:
                yield from block.walk()


class Skeleton:
    """The values and ops of a program with one function, by number.

    Args:
        root: The module; nobody may change it as long as this is in use.
        function: Its function.
    """

    def __init__(self, root: Op, function: Op) -> None:
        self.root = root
        self.function = function
        self.values: list[Value] = []
        self.numbers: dict[Value, int] = {}
        self.maker: dict[int, Entry] = {}
        """Per value that an op makes, that op."""
        self.users: dict[int, list[Entry]] = {}
        """Per value, the ops that use it."""
        self.returned: set[int] = set()
        """The values that blocks return."""
        self.statics: dict[Hashable, int] = {}
        self.constants: dict[int, Hashable] = {}
        """Per value that is a constant, what it is."""
        self.twins: dict[int, list[int]] = {}
        """Per value, those in whose place it is used."""
        self.body = self._block(function.region.blocks[0])

    def with_body(self, body: BlockSkeleton, twins: Mapping[int, int]) -> Skeleton:
        """The same program with other ops.

        Args:
            body: The ops.
            twins: By value that they do not make any more the one in its place.
        """
        found = copy(self)
        found.body, found.maker, found.users, found.twins = body, {}, {}, {}
        for value, earlier in twins.items():
            found.twins.setdefault(earlier, []).append(value)
        for entry in body.walk():
            found.note(entry)
        return found

    def note(self, entry: Entry) -> None:
        """Note what an op makes and uses."""
        for number in entry.results:
            self.maker[number] = entry
        for number in (*entry.operands, *entry.captured):
            self.users.setdefault(number, []).append(entry)

    def is_used(self, value: int) -> bool:
        """Whether an op uses a value, or a block returns it."""
        return value in self.users or value in self.returned

    def has_one_use(self, value: int) -> bool:
        """Whether a value is used once."""
        return value not in self.twins and self.values[value].has_one_use()

    def shardings(self) -> list[TensorSharding | None]:
        """The sharding of every value, as the nodes have it."""
        return get_shardings(self.values)

    def results(self) -> list[TensorSharding | None]:
        """How the function gives its results, as the nodes say."""
        entries = self.function.attrs.get("res_attrs")
        return [entry.get(SHARDING) for entry in entries] if entries else [None] * len(self.body.returned)

    def _block(self, node: Block) -> BlockSkeleton:
        block = BlockSkeleton(node, tuple([self._new(value) for value in node.args]))
        for op in _live(node):
            block.entries.append(self._entry(op, len(block.entries)))
        block.returned = tuple([self.numbers[value] for value in node.terminator.operands])
        self.returned.update(block.returned)
        return block

    def _new(self, value: Value) -> int:
        number = self.numbers[value] = len(self.values)
        self.values.append(value)
        return number

    def _entry(self, op: Op, index: int) -> Entry:
        numbers, entry = self.numbers, Entry(op, index)
        entry.operands = tuple([numbers[value] for value in op.operands])
        if op.regions:
            if op.name in STRUCTURE:
                entry.blocks = tuple([self._block(region.block) for region in op.regions])
            else:
                entry.captured = tuple([numbers[value] for value in captured_values(op)])
        entry.results = tuple([self._new(value) for value in op.results])
        self.note(entry)
        if not (entry.blocks or entry.captured or _counts_around(op)):
            entry.static = self.statics.setdefault(self._static_key(op), len(self.statics))
        if op.name in PROGRAM_CONSTANTS:
            self.constants[entry.results[0]] = op.attrs.get("value")
        return entry

    def _static_key(self, op: Op) -> Hashable:
        key: list[Hashable] = [op.name, len(op.results)]
        for name, value in op.attrs.items():
            if name not in _OF_THE_PLACE:
                key.append(name)
                key.append(value)
        for value in op.operands:
            key.append(value.type)
        for value in op.results:
            key.append(value.type)
        if op.regions:
            key.append(tuple(_inside(op)))
        if op.name not in ELEMENTWISE:
            key.extend([self.constants.get(self.numbers[value]) for value in op.operands])
        return tuple(key)


def _live(block: Block) -> list[Op]:
    """The ops of a block without those that have no effect and that nothing uses, not even through others."""
    kept: list[Op] = []
    used: set[Value] = set(block.terminator.operands)
    for op in reversed(block):
        if op is block.last:
            continue
        if op.results and used.isdisjoint(op.results) and is_pure(op):
            continue
        used.update(op.operands)
        if op.regions:
            used.update(captured_values(op))
        kept.append(op)
    kept.reverse()
    return kept


def captured_values(op: Op) -> list[Value]:
    """The values from outside that the regions of an op use, each once."""
    own: set[Value] = set()
    found: dict[Value, None] = {}
    for inner in walk(op):
        for region in inner.regions:
            for block in region.blocks:
                own.update(block.args)
        if inner is op:
            continue
        for value in inner.operands:
            if value not in own:
                found[value] = None
        own.update(inner.results)
    return [value for value in found if value not in own]


def _counts_around(op: Op) -> bool:
    """Whether what becomes of an op may depend on more than its shardings."""
    name = op.name
    if name in CONTEXT_FACTS or name in _ON_ITS_OWN or is_of_shardings(name):
        return True
    return not op.results or not is_pure(op)


def is_of_shardings(name: str) -> bool:
    """Whether an op is about how values are sharded, and not about what they are.

    >>> is_of_shardings("sdy.reshard"), is_of_shardings("sdy.constant"), is_of_shardings("stablehlo.add")
    (True, False, False)
    """
    return name.startswith("sdy.") and name not in PROGRAM_CONSTANTS


def _inside(op: Op) -> Iterator[Hashable]:
    """What the bodies of an op do, as far as its cost depends on it."""
    for inner in walk(op):
        if inner is not op:
            yield inner.name
            yield inner.attrs.get("value")
