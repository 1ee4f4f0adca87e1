"""`sdy-constant-or-scalar-merger`: undoes the splitting of constants whose shardings agree.

Source: docs/semantics/export.md#sdy-constant-or-scalar-merger
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pyshardy.ir.blocks import Region, Value
from pyshardy.ir.op import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.value_type import ValueType
from pyshardy.passes.base import Anchor, Pass
from pyshardy.rules.properties import CONSTANTS
from pyshardy.transforms.context import PassContext

_BROADCAST = "stablehlo.broadcast_in_dim"
_MERGED = CONSTANTS | {_BROADCAST}


class ConstantOrScalarMerger(Pass):
    """Merge equal constants, and equal broadcasts of one scalar, within a region."""

    name = "sdy-constant-or-scalar-merger"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        merge(op)


def merge(function: Op) -> None:
    """Merge equal ops in every region of a function."""
    originals = _Originals()
    for op in ops_named(function, _MERGED, post_order=True):
        scalar = op.operands[0] if op.name == _BROADCAST else None
        if op.block is None or (scalar is not None and scalar.type.shape != ()):
            continue
        result = op.results[0]
        earlier = originals.of(op, op.block.region, None if scalar is None else result.type, scalar)
        if earlier is not op:
            result.replace_uses(earlier.results[0])
            op.erase()


class _Originals:
    """Finds the first of equal ops; compares attributes by identity where possible, because the bindings are slow."""

    def __init__(self) -> None:
        self._seen: dict[tuple[Hashable, ...], Op] = {}  # by the identity of attributes
        self._kept: list[Any] = []  # keeps these attributes alive, so that identities stay unique
        self._numbers: dict[Any, int] = {}
        self._first: dict[tuple[Hashable, ...], Op] = {}

    def of(self, op: Op, region: Region | None, result_type: ValueType | None, scalar: Value | None) -> Op:
        """The first op in a region with the same attributes, result type and scalar."""
        own = op.attrs
        by_identity = region, result_type, scalar, id(own)
        found = self._seen.get(by_identity)
        if found is None:
            self._kept.append(own)
            numbers = self._numbers
            attrs = sorted([(name, numbers.setdefault(attr, len(numbers))) for name, attr in own.items()])
            found = self._seen[by_identity] = self._first.setdefault((region, result_type, scalar, *attrs), op)
        return found
