"""A module as plain Python objects, on which every pass of pyshardy works.

MLIR is read once into these nodes (`read.py`) and written once from them (`write.py`). They mirror MLIR's structure,
including the order of use-lists, because some results of propagation depend on it. Attributes that pyshardy understands
are held as values of `core` and `rules`, all others as opaque MLIR attributes (`attrs.py` says which).

Source: docs/semantics/propagation.md#order-of-uses
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from pyshardy.ir.attributes import freeze
from pyshardy.ir.source import OpPlace, Source, location_at
from pyshardy.rules.ops import ops_that

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


class ValueType:
    """The type of a value; one object per distinct type of a module.

    Attributes:
        mlir: The MLIR type.
        shape: Sizes of the dimensions, -1 for a dynamic one; None if the type has no dimensions (a token, a
            tuple, an unranked tensor).
        element: Text of the element type, such as "f32"; the text of the whole type if it has no dimensions.
        is_shaped: Whether it is a shaped type of MLIR, ranked or not.
        is_ranked_tensor: Whether it is a ranked tensor.
    """

    __slots__ = ("mlir", "shape", "element", "is_shaped", "is_ranked_tensor", "is_static")

    def __init__(
        self, mlir: Any, shape: tuple[int, ...] | None, element: str, is_shaped: bool, is_ranked_tensor: bool
    ) -> None:
        self.mlir = mlir
        self.shape = shape
        self.element = element
        self.is_shaped = is_shaped
        self.is_ranked_tensor = is_ranked_tensor
        self.is_static = shape is not None and -1 not in shape

    @property
    def rank(self) -> int:
        """Number of dimensions; 0 for a type without dimensions."""
        return len(self.shape or ())

    def __str__(self) -> str:
        return str(self.mlir)


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
        return self.owner if isinstance(self.owner, Op) else None

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
        uses = self.uses
        moved = [*uses]
        moved.reverse()
        if only is not None:
            moved = [use for use in moved if only(*use)]
        for op, index in moved:
            op._put_operand(index, new)
            new.add_use(op, index)
        if len(moved) == len(uses):
            self.flat_uses = ()
        else:
            for op, index in moved:
                self.drop_use(op, index)

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


class Op:
    """An operation.

    Args:
        name: Full name, "stablehlo.add".
        operands: The values that it uses.
        result_types: Types of its results.
        attrs: Its attributes, both inherent and discardable.
        region_count: Number of empty regions to make.
        location: The MLIR location, or an object that provides it on demand.
        successors: Blocks a terminator may branch to.

    Attributes:
        attrs: The attributes. They never change, and ops may share them; `set_attr` and `remove_attr` replace them.
        source: The module that this op was read from; None for an op that was made or copied.
        number: Its number in that module.
    """

    __slots__ = (
        "name", "operands", "results", "attrs", "regions", "successors", "source", "number",
        "_location", "block", "prev", "next", "order",
    )  # fmt: skip

    source: Source | None
    number: int
    block: Block | None
    prev: Op | None
    next: Op | None

    def __init__(
        self,
        name: str,
        operands: Iterable[Value] = (),
        result_types: Iterable[ValueType] = (),
        attrs: dict[str, Any] | None = None,
        region_count: int = 0,
        location: Any = None,
        successors: tuple[Block, ...] = (),
    ) -> None:
        self.name = name
        self.operands = tuple(operands)
        results: list[Value] = []
        for type in result_types:
            results.append(Value(type, self, len(results)))
        self.results = tuple(results)
        self.attrs = freeze(attrs)
        self.regions: tuple[Region, ...] = tuple([Region(self) for _ in range(region_count)]) if region_count else ()
        self.successors = successors
        self._location = location
        self.source = None
        self.number = -1
        self.block = self.prev = self.next = None
        self.order = 0
        index = 0
        for value in self.operands:
            value.add_use(self, index)
            index += 1  # noqa: SIM113 (faster than enumerate where most ops have one or two operands)

    def __repr__(self) -> str:
        return f"<Op {self.name}>"

    def set_attr(self, name: str, value: Any) -> None:
        """Set an attribute of this op; ops that shared its attributes keep theirs."""
        self.attrs = self.attrs.with_value(name, value)

    def remove_attr(self, name: str) -> None:
        """Remove an attribute from this op, if it has it."""
        self.attrs = self.attrs.without(name)

    def replace_attrs(self, attrs: dict[str, Any]) -> None:
        """Replace all attributes of this op."""
        self.attrs = freeze(attrs)

    @property
    def location(self) -> Any:
        """The MLIR location."""
        found = self._location
        if found is None and self.source is not None:
            return self.source.location(self.number)
        found = self._location = location_at(found)
        return found

    @location.setter
    def location(self, location: Any) -> None:
        self._location = location

    @property
    def place(self) -> Any:
        """The location, or an object that provides it: pass it to an op that replaces this one."""
        if self._location is None and self.source is not None:
            return OpPlace(self.source, self.number)
        return self._location

    @property
    def result(self) -> Value:
        """The only result."""
        (result,) = self.results
        return result

    @property
    def region(self) -> Region:
        """The only region."""
        (region,) = self.regions
        return region

    @property
    def parent_op(self) -> Op | None:
        """The op around this one; None for the module."""
        return None if self.block is None or self.block.region is None else self.block.region.op

    def ancestors(self) -> Iterator[Op]:
        """The ops around this one, innermost first."""
        parent = self.parent_op
        while parent is not None:
            yield parent
            parent = parent.parent_op

    def enclosing(self, name: str) -> Op | None:
        """The innermost op of this name around this one."""
        return next((op for op in self.ancestors() if op.name == name), None)

    @property
    def is_terminator(self) -> bool:
        """Whether this op ends its block; by position, because every block of these programs has a terminator."""
        return self.next is None and self.name in TERMINATORS

    def has_uses(self) -> bool:
        """Whether any result is used."""
        for result in self.results:  # noqa: SIM110 (`any` takes longer for so few)
            if result.flat_uses:
                return True
        return False

    def is_before(self, other: Op) -> bool:
        """Whether this op stands before `other` in the same block."""
        assert self.block is not None and self.block is other.block
        if not self.block._ordered:
            self.block._number()
        return self.order < other.order

    def rename(self, name: str) -> None:
        """Change the name of this op; operands, results and attributes stay."""
        region = None if self.block is None else self.block.region
        if region is not None:
            region.forget(self)
        self.name = name
        if region is not None:
            region.forget(self)

    def set_operand(self, index: int, value: Value) -> None:
        """Use `value` as operand `index`."""
        old = self.operands[index]
        old.drop_use(self, index)
        self._put_operand(index, value)
        value.add_use(self, index)

    def add_operand(self, value: Value) -> None:
        """Append `value` as the last operand."""
        value.add_use(self, len(self.operands))
        self.operands = (*self.operands, value)

    def _put_operand(self, index: int, value: Value) -> None:
        operands = self.operands
        self.operands = (value,) if len(operands) == 1 else (*operands[:index], value, *operands[index + 1 :])

    def insert_before(self, anchor: Op) -> Op:
        """Put this detached op before `anchor`."""
        assert anchor.block is not None
        anchor.block._link(self, anchor.prev, anchor)
        return self

    def insert_after(self, anchor: Op) -> Op:
        """Put this detached op after `anchor`."""
        assert anchor.block is not None
        anchor.block._link(self, anchor, anchor.next)
        return self

    def detach(self) -> Op:
        """Take this op out of its block; it keeps its operands."""
        assert self.block is not None
        if self.block.region is not None:
            self.block.region.forget(self)
        if self.prev is None:
            self.block.first = self.next
        else:
            self.prev.next = self.next
        if self.next is None:
            self.block.last = self.prev
        else:
            self.next.prev = self.prev
        self.block = self.prev = self.next = None
        return self

    def erase(self) -> None:
        """Remove this op and all ops inside it; nothing may use its results."""
        assert not self.has_uses(), f"{self.name} still has uses"
        self.detach()
        self.drop_operands()

    def drop_operands(self) -> None:
        """Drop the operands of this op and of all ops inside it."""
        for index, value in enumerate(self.operands):
            value.drop_use(self, index)
        self.operands = ()
        for region in self.regions:
            for block in region.blocks:
                for op in block:
                    op.drop_operands()

    def clone(self, mapping: dict[Value, Value] | None = None) -> Op:
        """A detached copy with everything inside; operands found in `mapping` are replaced.

        Adds the results and block arguments of all copied ops to `mapping`.
        """
        mapping = {} if mapping is None else mapping
        copy = Op(
            self.name,
            [mapping.get(value, value) for value in self.operands],
            [result.type for result in self.results],
            self.attrs,
            len(self.regions),
            self.place,
            self.successors,
        )
        mapping.update(zip(self.results, copy.results))
        for region, target in zip(self.regions, copy.regions):
            clone_region_into(region, target, mapping)
        return copy


def clone_region_into(source: Region, target: Region, mapping: dict[Value, Value]) -> None:
    """Copy the blocks of `source` to the end of `target`; adds their arguments and results to `mapping`."""
    blocks = {block: target.add_block() for block in source.blocks}
    for block, copy in blocks.items():
        for arg in block.args:
            mapping[arg] = copy.add_arg(arg.type, arg.place)
    for block, copy in blocks.items():
        for op in block:
            cloned = copy.append(op.clone(mapping))
            cloned.successors = tuple(blocks.get(successor, successor) for successor in op.successors)
    if len(blocks) > 1:
        _map_early_operands(blocks.values(), mapping)


def _map_early_operands(blocks: Iterable[Block], mapping: dict[Value, Value]) -> None:
    """Map the operands that were copied before their definition: a block may precede the one that defines them."""
    for block in blocks:
        for top in block:
            for op in walk(top):
                for index, value in enumerate(op.operands):
                    if value in mapping:
                        op.set_operand(index, mapping[value])


TERMINATORS = ops_that(lambda traits: traits.is_terminator)
"""Ops that end a block."""


def walk(op: Op) -> Iterator[Op]:
    """The op and all ops inside it, every op before the ops inside it. The op just yielded may be erased."""
    yield op
    pending: list[Op | Block | None] = _blocks_reversed(op)
    while pending:
        place = pending.pop()
        current = place.first if isinstance(place, Block) else place
        while current is not None:
            following = current.next
            yield current
            if current.regions:
                pending.append(following)
                pending += _blocks_reversed(current)
                break
            current = following


def _blocks_reversed(op: Op) -> list[Op | Block | None]:
    return [block for region in reversed(op.regions) for block in reversed(region.blocks)]


def walk_post_order(op: Op) -> Iterator[Op]:
    """All ops inside the op and then the op itself, every op after the ops inside it. Yielded ops may be erased."""
    for region in op.regions:
        for block in region.blocks:
            inner = block.first
            while inner is not None:
                following = inner.next
                if inner.regions:
                    yield from walk_post_order(inner)
                else:
                    yield inner
                inner = following
    yield op
