"""The ops that read a value, also where others hand it on: through loops, and through functions and back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from pyshardy.ir.callers import Callers
from pyshardy.ir.functions import CALL
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.trip_counts import LOOP

_RETURN = "func.return"
_BARRIER = "stablehlo.optimization_barrier"
_NAMED = "sdy.named_computation"
_MANUAL = "sdy.manual_computation"
_MOST_VALUES = 200
"""The values that are looked at for one."""


class Readers:
    """Who reads a value of a program.

    Args:
        root: The program; it must not change while this object is in use.
        same: Ops whose result counts as what they read.
    """

    def __init__(self, root: Op, same: Collection[str] = ()) -> None:
        self._callers, self._same = Callers(root), same

    def of(self, value: Value) -> Iterator[tuple[Op, Value]]:
        """The ops that read a value, each with what it reads: the value, or what others make of it.

        Args:
            value: The value.
        """
        todo, seen = [value], {id(value)}
        while todo and len(seen) < _MOST_VALUES:
            one = todo.pop()
            for op in one.users():
                yield op, one
                places = [place for place, operand in enumerate(op.operands) if operand is one]
                found = op.results if op.name in self._same else [v for place in places for v in self.after(op, place)]
                for more in found:
                    if id(more) not in seen:
                        seen.add(id(more))
                        todo.append(more)

    def after(self, op: Op, place: int) -> Sequence[Value]:
        """The values that are an operand of an op that computes nothing with it; none for other ops, or for the user.

        Args:
            op: A call, a loop, a barrier, what ends a function or a loop, ...
            place: The position of the operand.
        """
        parent = op.parent_op
        if op.name == _RETURN and parent is not None:
            return [call.results[place] for call in self._callers.of(parent)]
        if op.name == CALL:
            return [self._callers.callee(op).region.blocks[0].args[place]]
        if op.name in (_NAMED, _MANUAL):
            return [op.region.block.args[place]]
        if op.name == _BARRIER:
            return [op.results[place]]
        loop = parent if parent is not None and parent.name == LOOP and op.is_terminator else op
        if loop.name != LOOP or (loop is not op and op.block is loop.regions[0].block):
            return ()
        return [*(region.block.args[place] for region in loop.regions), loop.results[place]]
