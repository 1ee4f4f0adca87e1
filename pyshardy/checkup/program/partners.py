"""What weights are multiplied with, and where: such as the three projections of an attention layer."""

from __future__ import annotations

from collections.abc import Iterable

from pyshardy.ir.functions import main_function
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Value
from pyshardy.ir.readers import Readers
from pyshardy.propagation.origins import CONSTRAINT
from pyshardy.results.hints.code import Code

_SAME = frozenset((
    CONSTRAINT, "stablehlo.convert", "stablehlo.reshape", "stablehlo.transpose", "stablehlo.slice",
    "stablehlo.dynamic_slice",
))  # fmt: skip
"""Ops whose result is still the weight, or that of one layer."""
_BARRIER = "stablehlo.optimization_barrier"
_PRODUCT = "stablehlo.dot_general"


class Partners:
    """By weight the values that it is multiplied with.

    Args:
        module: The program.
    """

    def __init__(self, module: Module) -> None:
        self._args = main_function(module.root).region.blocks[0].args
        self._name = module.name
        self._readers = Readers(module.root, _SAME)
        self._known: dict[int, frozenset[int]] = {}

    def of(self, index: int) -> frozenset[int]:
        """Numbers that stand for the values which an input is multiplied with.

        Args:
            index: The number of the input.
        """
        if index not in self._known:
            self._known[index] = frozenset(
                id(_root(other))
                for op, weight in self._readers.of(self._args[index])
                for other in (op.operands if op.name == _PRODUCT else ())
                if other is not weight
            )
        return self._known[index]

    def lines(self, weights: Iterable[int]) -> frozenset[tuple[str, int]]:
        """The lines of products that read one of some weights.

        Args:
            weights: The numbers of the inputs.
        """
        products = (op for index in weights for op, _ in self._readers.of(self._args[index]) if op.name == _PRODUCT)
        return frozenset(place[:2] for op in products for place in Code.of(op, self._name).path[:1])


def _root(value: Value) -> Value:
    """What a value is before it is converted, constrained or otherwise arranged."""
    while (op := value.defining_op) is not None and (op.name in _SAME or op.name == _BARRIER):
        value = op.operands[op.results.index(value) if op.name == _BARRIER else 0]
    return value
