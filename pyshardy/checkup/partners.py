"""Which weights are multiplied with the same value, such as the three projections of an attention layer."""

from __future__ import annotations

from collections.abc import Iterator

from pyshardy.ir.functions import main_function
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.symbols import SymbolTable
from pyshardy.propagation.origins import CONSTRAINT

_SAME = frozenset((
    CONSTRAINT, "stablehlo.convert", "stablehlo.reshape", "stablehlo.transpose", "stablehlo.optimization_barrier",
    "stablehlo.slice", "stablehlo.dynamic_slice",
))  # fmt: skip
"""Ops whose result is still the weight, or that of one layer."""
_PRODUCT, _WHILE, _CALL = "stablehlo.dot_general", "stablehlo.while", "func.call"
_MOST_STEPS = 200
"""The values that are looked at for one weight."""


class Partners:
    """By weight the values that it is multiplied with.

    Args:
        module: The program.
    """

    def __init__(self, module: Module) -> None:
        self._args = main_function(module.root).region.blocks[0].args
        self._table = SymbolTable(module.root)
        self._known: dict[int, frozenset[int]] = {}

    def of(self, index: int) -> frozenset[int]:
        """Numbers that stand for the values which an input is multiplied with.

        Args:
            index: The number of the input.
        """
        if index not in self._known:
            self._known[index] = frozenset(id(value) for value in self._multiplied(self._args[index]))
        return self._known[index]

    def _multiplied(self, value: Value) -> Iterator[Value]:
        todo, seen = [value], {id(value)}
        while todo and len(seen) < _MOST_STEPS:
            one = todo.pop()
            for op in one.users():
                if op.name == _PRODUCT:
                    yield from (_root(other) for other in op.operands if other is not one)
                for more in self._same(op, one):
                    if id(more) not in seen:
                        seen.add(id(more))
                        todo.append(more)

    def _same(self, op: Op, value: Value) -> Iterator[Value]:
        """The values that an op hands a value on to."""
        places = [place for place, one in enumerate(op.operands) if one is value]
        if op.name in _SAME:
            yield from op.results if places[:1] == [0] else ()
        elif op.name == _WHILE:
            yield from (op.regions[1].blocks[0].args[place] for place in places)
        elif op.name == _CALL:
            yield from (self._table[op.attrs["callee"]].region.blocks[0].args[place] for place in places)


def _root(value: Value) -> Value:
    """What a value is before it is converted, constrained or otherwise arranged."""
    while (op := value.defining_op) is not None and op.name in _SAME and op.operands:
        value = op.operands[0]
    return value
