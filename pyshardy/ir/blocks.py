"""Values with their uses, blocks, and regions: what ops are connected by; `op.py` has the ops.

Source: docs/semantics/propagation.md#order-of-uses
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from pyshardy.ir.source import location_at
from pyshardy.ir.value_type import ValueType

if TYPE_CHECKING:
    from pyshardy.ir.op import Op

Use = tuple["Op", int]
"""A use of a value: an op and the number of the operand."""
Uses = tuple[Use, ...] | dict[Use, None]
"""All uses of a value, each once, in order."""
FlatUses = tuple[Any, ...] | dict[Use, None]
"""The same in the form that values store: op, number, op, number, ... if they are few."""
FEW_USES = 4
"""The most uses for which a tuple takes less memory than a dictionary, and no more time."""


def flat_uses(uses: Sequence[Use]) -> FlatUses:
    """Uses in the form that values store."""
    return tuple(chain.from_iterable(uses)) if len(uses) <= FEW_USES else dict.fromkeys(uses)


class Value:
    """A result of an op, or an argument of a block.

    `flat_uses` holds the uses in *reverse* MLIR order: the last one is the head of the use-list. It is a tuple if there
    are few, which is nearly always so, and else a dictionary without values, so that any use is found and removed in
    constant time.
    """

    __slots__ = ("type", "owner", "index", "flat_uses", "_location")

    def __init__(self, type: ValueType, owner: Op | Block, index: int, location: Any = None) -> None:
        self.type = type
        self.owner = owner
        self.index = index
        self.flat_uses: FlatUses = ()
        self._location = location

    @property
    def location(self) -> Any:
        """The MLIR location of an argument of a block; None if it has none, as for results."""
        found = self._location = location_at(self._location)
        return found

    @location.setter
    def location(self, location: Any) -> None:
        self._location = location

    @property
    def place(self) -> Any:
        """The location, or an object that provides it."""
        return self._location

    @property
    def defining_op(self) -> Op | None:
        """The op that defines this result; None for a block argument."""
        owner = self.owner
        return None if isinstance(owner, Block) else owner

    @property
    def block(self) -> Block:
        """The block in which this value is defined."""
        owner = self.owner
        if isinstance(owner, Block):
            return owner
        assert owner.block is not None
        return owner.block

    @property
    def uses(self) -> Uses:
        """The uses of this value, latest ones last."""
        uses = self.flat_uses
        return uses if isinstance(uses, dict) else tuple(zip(uses[::2], uses[1::2]))

    def add_use(self, op: Op, index: int) -> None:
        """Record that an operand of `op` is this value: the new head of the use-list."""
        uses = self.flat_uses
        if not uses:
            self.flat_uses = (op, index)
        elif isinstance(uses, dict):
            uses[op, index] = None
        elif len(uses) < 2 * FEW_USES:
            few = uses
            self.flat_uses = few + (op, index)  # noqa: RUF005 (faster)
        else:
            self.flat_uses = flat_uses((*self.uses, (op, index)))

    def drop_use(self, op: Op, index: int) -> None:
        """Record that an operand of `op` is no longer this value."""
        uses = self.flat_uses
        if isinstance(uses, dict):
            del uses[op, index]
            return
        few = uses
        for place in range(0, len(few), 2):
            if few[place] is op and few[place + 1] == index:
                self.flat_uses = few[:place] + few[place + 2 :]
                return

    def users(self) -> list[Op]:
        """The ops that use this value, in use-list order, one entry per use."""
        uses = self.flat_uses
        return [op for op, _ in reversed(uses)] if isinstance(uses, dict) else [*uses[-2::-2]]

    def has_one_use(self) -> bool:
        """Whether exactly one operand is this value."""
        uses = self.flat_uses
        return len(uses) == (1 if isinstance(uses, dict) else 2)

    def only_user(self) -> Op | None:
        """The op of the only use; None if there is no use or several."""
        if not self.has_one_use():
            return None
        (op,) = self.users()
        return op

    def set_type(self, type: ValueType) -> None:
        """Give the value another type."""
        self.type = type

    def replace_uses(self, new: Value, only: Callable[[Op, int], bool] | None = None) -> None:
        """Make every use, or every use that `only` accepts, use `new` instead.

        It walks the uses from the head of the list, so they end up reversed in front of the uses of `new`.
        """
        if only is None:
            self._move_all_uses(new)
            return
        moved = [use for use in reversed(self.uses) if only(*use)]
        for op, index in moved:
            op._put_operand(index, new)
            new.add_use(op, index)
            self.drop_use(op, index)

    def _move_all_uses(self, new: Value) -> None:
        uses = self.flat_uses
        self.flat_uses = ()
        if isinstance(uses, dict):
            for op, index in reversed(uses):
                op._put_operand(index, new)
                new.add_use(op, index)
            return
        few = uses
        for place in range(len(few) - 2, -1, -2):
            op, index = few[place], few[place + 1]
            op._put_operand(index, new)
            new.add_use(op, index)

    def replace_other_uses(self, op: Op) -> None:
        """Make every use except those by `op` use the first result of `op` instead."""
        self.replace_uses(op.results[0], lambda user, _: user is not op)


class Block:
    """A list of ops with arguments, linked so that inserting and removing anywhere takes constant time."""

    __slots__ = ("region", "args", "first", "last", "_ordered")

    def __init__(self, region: Region | None = None) -> None:
        self.region = region
        self.args: list[Value] = []
        self.first: Op | None = None
        self.last: Op | None = None
        self._ordered = False

    def __iter__(self) -> Iterator[Op]:
        op = self.first
        while op is not None:
            following = op.next
            yield op
            op = following

    def __reversed__(self) -> Iterator[Op]:
        op = self.last
        while op is not None:
            previous = op.prev
            yield op
            op = previous

    @property
    def parent_op(self) -> Op:
        """The op whose region holds this block."""
        assert self.region is not None
        return self.region.op

    @property
    def terminator(self) -> Op:
        """The last op."""
        assert self.last is not None
        return self.last

    def add_arg(self, type: ValueType, location: Any = None) -> Value:
        """Append an argument."""
        arg = Value(type, self, len(self.args), location)
        self.args.append(arg)
        return arg

    def append(self, op: Op) -> Op:
        """Put a detached op at the end."""
        self._link(op, self.last, None)
        return op

    def prepend(self, op: Op) -> Op:
        """Put a detached op at the start."""
        self._link(op, None, self.first)
        return op

    def reorder(self, ops: Sequence[Op]) -> None:
        """Put the ops of this block into another order; `ops` are all of them."""
        previous: Op | None = None
        order = 0
        for op in ops:
            op.prev = previous
            op.order = order
            if previous is None:
                self.first = op
            else:
                previous.next = op
            previous = op
            order += 1  # noqa: SIM113 (faster than enumerate)
        if previous is not None:
            previous.next = None
        self.last = previous
        self._ordered = True
        if self.region is not None:
            self.region.op_index = None

    def _link(self, op: Op, before: Op | None, after: Op | None) -> None:
        op.block, op.prev, op.next = self, before, after
        if self.region is not None:
            self.region.forget(op)
        if before is None:
            self.first = op
        else:
            before.next = op
        if after is None:
            self.last = op
            if self._ordered:
                op.order = 0 if before is None else before.order + 1
        else:
            after.prev = op
            self._ordered = False

    def _number(self) -> None:
        for order, op in enumerate(self):
            op.order = order
        self._ordered = True


class Region:
    """The blocks that belong to one op.

    Attributes:
        op: The op.
        blocks: The blocks.
        op_index: The index of `op_lists.py`: the ops of each name inside, at any depth; None for a name whose ops were
            added or removed since. The index is None before the first search, and empty if the region has few ops.
    """

    __slots__ = ("op", "blocks", "op_index")

    def __init__(self, op: Op) -> None:
        self.op = op
        self.blocks: list[Block] = []
        self.op_index: dict[str, list[Op] | None] | None = None

    @property
    def block(self) -> Block:
        """The only block."""
        (block,) = self.blocks
        return block

    def add_block(self) -> Block:
        """Append an empty block."""
        block = Block(self)
        self.blocks.append(block)
        return block

    def take_body(self, other: Region) -> None:
        """Move all blocks of `other` to the end of this region."""
        for block in other.blocks:
            for op in block:
                self.forget(op)
                other.forget(op)
            block.region = self
        self.blocks.extend(other.blocks)
        other.blocks = []

    def forget(self, op: Op) -> None:
        """Record that an op enters or leaves this region, with all ops inside it."""
        region: Region | None = self
        while region is not None:
            if region.op_index:
                _forget_in_index(region.op_index, op)
            block = region.op.block
            region = None if block is None else block.region


def _forget_in_index(op_index: dict[str, list[Op] | None], op: Op) -> None:
    op_index[op.name] = None
    for region in op.regions:
        for block in region.blocks:
            inner = block.first
            while inner is not None:
                _forget_in_index(op_index, inner)
                inner = inner.next
