"""The ops that read a value, also where others hand it on: through loops, and through functions and back."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pyshardy.ir.callers import Callers
from pyshardy.ir.functions import CALL
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.trip_counts import LOOP

_RETURN = "func.return"
_MOST_VALUES = 200
"""The values that are looked at for one."""


class Readers:
    """Who reads a value of a program.

    Args:
        root: The program; it must not change while this object is in use.
        same: Ops whose result counts as what they read.
    """

    def __init__(self, root: Op, same: Collection[str]) -> None:
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
                for more in self._handed_on(op, one):
                    if id(more) not in seen:
                        seen.add(id(more))
                        todo.append(more)

    def _handed_on(self, op: Op, value: Value) -> Iterator[Value]:
        places = [place for place, one in enumerate(op.operands) if one is value]
        if op.name in self._same:
            yield from op.results
        elif op.name == LOOP:
            yield from (op.regions[1].blocks[0].args[place] for place in places)
        elif op.name == CALL:
            yield from (self._callers.callee(op).region.blocks[0].args[place] for place in places)
        elif op.name == _RETURN and op.parent_op is not None:
            yield from (call.results[place] for call in self._callers.of(op.parent_op) for place in places)
