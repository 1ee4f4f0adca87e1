"""`sdy-constant-or-scalar-merger`: undoes the splitting of constants where shardings agree (export spec, 4.1)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pyshardy.ir.listing import ops_named
from pyshardy.ir.nodes import Op, Region, Value, ValueType
from pyshardy.passes.base import Anchor, Pass, PassContext

_CONSTANTS = frozenset(("sdy.constant", "stablehlo.constant", "mhlo.constant", "chlo.constant", "arith.constant"))
_BROADCAST = "stablehlo.broadcast_in_dim"
_MERGED = _CONSTANTS | {_BROADCAST}


class ConstantOrScalarMerger(Pass):
    """Merge equal constants, and equal broadcasts of one scalar, within a region."""

    name = "sdy-constant-or-scalar-merger"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        merge(op)


def merge(function: Op) -> None:
    """Merge what is equal in every region of a function."""
    first: dict[_Key, Op] = {}
    numbers = _Numbers()
    for op in ops_named(function, _MERGED, post_order=True):
        scalar = op.operands[0] if op.name == _BROADCAST else None
        if op.block is None or (scalar is not None and scalar.type.shape != ()):
            continue
        result = op.results[0]
        type = None if scalar is None else result.type
        key = numbers.of(op.attrs), op.block.region, type, scalar
        earlier = first.setdefault(key, op)
        if earlier is not op:
            result.replace_uses(earlier.results[0])
            op.erase()


_Key = tuple[int, Region | None, ValueType | None, Value | None]


class _Numbers:
    """Numbers for sets of attributes, the same for equal ones: the bindings compare and hash attributes slowly."""

    def __init__(self) -> None:
        self._seen: dict[tuple[Hashable, ...], tuple[int, list[Any]]] = {}  # by identity, with what that keeps alive
        self._attrs: dict[Any, int] = {}
        self._sets: dict[tuple[tuple[str, int], ...], int] = {}

    def of(self, attrs: dict[str, Any]) -> int:
        """The number of the attributes of an op."""
        values = list(attrs.values())
        key = *attrs, *[value if type(value) is tuple else id(value) for value in values]
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = self._new(attrs), values
        return found[0]

    def _new(self, attrs: dict[str, Any]) -> int:
        known = self._attrs
        numbered = sorted([(name, known.setdefault(attr, len(known))) for name, attr in attrs.items()])
        return self._sets.setdefault(tuple(numbered), len(self._sets))
