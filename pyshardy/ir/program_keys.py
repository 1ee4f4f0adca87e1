"""Recognizes sharded programs that are equal, so that the work that follows from a program is done once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from itertools import count
from typing import Any

from pyshardy.ir.attributes import Attributes
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_in
from pyshardy.ir.shardings import get_sharding
from pyshardy.propagation.origins import CONSTRAINT

_CONSTRAINING = frozenset((CONSTRAINT, "sdy.reshard"))


class ProgramKeys:
    """Gives equal keys to equal programs. A constraint of a value to the sharding that it has makes no difference.

    It holds MLIR attributes, so it must not outlive the context. Locations do not count.
    """

    def __init__(self) -> None:
        self._kinds: dict[Hashable, int] = {}
        """The number of each kind of op: its name, attributes and types."""
        self._attrs: dict[int, tuple[Any, Hashable]] = {}
        """What is compared of attributes, by identity; they are kept, as ops of several programs share them."""

    def key(self, root: Op) -> tuple[int, ...]:
        """The key of a propagated program.

        Args:
            root: The module.
        """
        values: defaultdict[Value, int] = defaultdict(count().__next__)
        key: list[int] = []
        for op in ops_in(root):
            operands = [values[value] for value in op.operands]
            if op.name in _CONSTRAINING and op.attrs["sharding"] == get_sharding(op.operands[0]):
                values[op.result] = operands[0]
                continue
            made = [*op.results, *(value for region in op.regions for block in region.blocks for value in block.args)]
            kind = op.name, self._of_attrs(op.attrs), tuple([value.type for value in made]), len(op.results)
            key.append(self._kinds.setdefault(kind, len(self._kinds)))
            key += [-1 - values[value] for value in (*op.operands, *made)]  # no number of a kind is negative
        return tuple(key)

    def _of_attrs(self, attrs: Any) -> Hashable:
        found = self._attrs.get(id(attrs))
        if found is None:
            found = self._attrs[id(attrs)] = attrs, _hashable(attrs)
        return found[1]


def _hashable(one: Any) -> Hashable:
    """Attributes and lists, as those of the arguments of a function, as tuples."""
    if isinstance(one, Attributes):
        return tuple([(name, _hashable(value)) for name, value in one.items()])
    return tuple(map(_hashable, one)) if isinstance(one, tuple | list) else one
