"""Rewriting ops until nothing changes, in the order and with the side effects of MLIR's greedy driver.

An iteration puts every op on a stack once. An op taken from the stack is removed if it is dead; otherwise the patterns
for its name are tried. Every op that a rewrite touches goes back on the stack. In addition, equal constants of an
isolated region are merged at its start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from jaxlib.mlir import ir

from pyshardy.errors import InvalidShardingError
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.blocks import Region, Value
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.op import Op
from pyshardy.ir.op_lists import ops_in, ops_named
from pyshardy.ir.purity import is_dead
from pyshardy.ir.value_type import ValueType
from pyshardy.rules.properties import CONSTANTS

_FOLDED_CONSTANTS = CONSTANTS - {"sdy.constant"}
"""The ops that MLIR's greedy driver treats as constants."""
OWN_CONSTANTS = frozenset(("func.func", "builtin.module", "sdy.manual_computation", "sdy.named_computation"))
"""Ops whose regions have their own constants."""


class Rewriter:
    """The changes that a pattern makes to a program.

    Args:
        attrs: The attributes of the context.
        push: Puts an op on the stack, unless it is already there.
        drop: Takes an op off the stack.
    """

    def __init__(self, attrs: AttrTable, push: Callable[[Op], None], drop: Callable[[Op], None]) -> None:
        self.attrs = attrs
        self._push = push
        self._drop = drop

    def touch(self, op: Op) -> None:
        """Visit an op, and the ops around it, again."""
        self._push(op)
        for outer in op.ancestors():
            self._push(outer)

    def insert(self, op: Op, anchor: Op) -> Op:
        """Put a new op before `anchor`."""
        op.insert_before(anchor)
        self.touch(op)
        return op

    def replace(self, op: Op, value: Value) -> None:
        """Replace the only result of an op by `value`, and erase the op."""
        for user in op.result.users():
            self.touch(user)
        op.result.replace_uses(value)
        self.erase(op)

    def erase(self, op: Op) -> None:
        """Erase an unused op; the ops that define its operands may be dead then."""
        for value in op.operands:
            definition = value.defining_op
            if definition is not None and not _has_two_users_besides(value, op):
                self.touch(definition)
        for inner in ops_in(op):
            self._drop(inner)
        op.erase()


def _has_two_users_besides(value: Value, op: Op) -> bool:
    other: Op | None = None
    for user in value.users():
        if user is op or user is other:
            continue
        if other is not None:
            return True
        other = user
    return False


Pattern = Callable[[Op, Rewriter], bool]
"""Rewrites an op if it can; returns whether it has."""


class GreedyDriver:
    """Applies patterns to all ops inside an op, removes dead ops and merges constants.

    Args:
        patterns: Per op name, the patterns in the order in which they are tried.
        attrs: The attributes of the context.
        top_down: Whether to start with the first op rather than the last.
    """

    def __init__(self, patterns: Mapping[str, Sequence[Pattern]], attrs: AttrTable, top_down: bool) -> None:
        self.patterns = dict(patterns)
        self.top_down = top_down
        self.stack: list[Op] = []
        self.pending: set[Op] = set()
        self.rewriter = Rewriter(attrs, self._push, self.pending.discard)

    def run(self, root: Op) -> None:
        """Rewrite until an iteration changes nothing.

        Raises:
            PassError: A rewrite would use an axis twice in one sharding.
        """
        while self._iterate(root):
            pass

    def _push(self, op: Op) -> None:
        if op not in self.pending and op.block is not None:
            self.pending.add(op)
            self.stack.append(op)

    def _iterate(self, root: Op) -> bool:
        ops = ops_in(root)[1:] if self.top_down else ops_in(root, post_order=True)[:-1]
        constants = _Constants(self.rewriter, ops_named(root, _FOLDED_CONSTANTS, post_order=not self.top_down))
        has_work = self._has_work(ops)
        if has_work and not constants.are_distinct():
            for op in ops:
                if constants.keep(op):
                    self._push(op)
        else:
            for op in constants.keys:
                constants.keep(op)
            self.stack[:] = ops if has_work else ()
            self.pending.clear()
            self.pending.update(self.stack)
        if self.top_down:
            self.stack.reverse()
        return self._empty_stack()

    def _has_work(self, ops: list[Op]) -> bool:
        """Whether there is a pattern for any op, or an op is dead."""
        patterns = self.patterns
        for op in ops:
            if op.name in patterns:
                return True
            if is_dead(op):
                return True
        return False

    def _empty_stack(self) -> bool:
        changed = False
        stack, pending, patterns = self.stack, self.pending, self.patterns
        while stack:
            op = stack.pop()
            if op not in pending:
                continue
            pending.remove(op)
            if is_dead(op):
                self.rewriter.erase(op)
                changed = True
                continue
            if op.name in patterns and self._rewrite(op, patterns[op.name]):
                changed = True
        return changed

    def _rewrite(self, op: Op, patterns: Sequence[Pattern]) -> bool:
        try:
            return any(pattern(op, self.rewriter) for pattern in patterns)
        except InvalidShardingError as error:
            raise PassError(op, str(error)) from error


_ConstantKey = tuple[Region, str, object, ValueType]


class _Constants:
    """The distinct constants of every region with its own constants, at the start of the region.

    A constant that stands for several, or comes from an inner region, loses its location.

    Attributes:
        keys: Per constant, the key that it shares with equal constants of the region.
    """

    def __init__(self, rewriter: Rewriter, ops: Iterable[Op]) -> None:
        self.rewriter = rewriter
        self.keys = {op: _constant_key(op) for op in ops}
        self.first: dict[_ConstantKey, Op] = {}
        self.kept: set[Op] = set()

    def are_distinct(self) -> bool:
        """Whether no region has equal constants."""
        return len(set(self.keys.values())) == len(self.keys)

    def keep(self, op: Op) -> bool:
        """Replace a constant by an equal one, or move it to the start; return whether the op stays."""
        key = self.keys.get(op)
        if key is None:
            return True
        earlier = self.first.setdefault(key, op)
        if earlier is not op:
            self.rewriter.replace(op, earlier.result)
            earlier.location = ir.Location.unknown()
            return False
        self.kept.add(op)
        target = key[0].blocks[0]
        if op.block is not target:
            op.location = ir.Location.unknown()
        if op is not target.first and op.prev not in self.kept:
            target.prepend(op.detach())
        return True


def _constant_key(op: Op) -> _ConstantKey:
    home = next(outer for outer in op.ancestors() if outer.name in OWN_CONSTANTS)
    return home.regions[0], op.name.partition(".")[0], op.attrs["value"], op.result.type
