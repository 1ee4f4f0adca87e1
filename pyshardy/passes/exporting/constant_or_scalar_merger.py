"""`sdy-constant-or-scalar-merger`: undoes the splitting of constants where shardings agree (export spec, 4.1)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pyshardy.ir.nodes import Op, walk_post_order
from pyshardy.passes.base import Anchor, Pass, PassContext

_CONSTANTS = frozenset(("sdy.constant", "stablehlo.constant", "mhlo.constant", "chlo.constant", "arith.constant"))
_BROADCAST = "stablehlo.broadcast_in_dim"
_MERGED = _CONSTANTS | {_BROADCAST}


class ConstantOrScalarMerger(Pass):
    """Merge equal constants, and equal broadcasts of one scalar, within a region."""

    name = "sdy-constant-or-scalar-merger"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        first: dict[Hashable, Op] = {}
        numbers = _Numbers()
        for inner in [inner for inner in walk_post_order(op) if inner.name in _MERGED]:
            key = _key(inner, numbers)
            if key is None:
                continue
            earlier = first.setdefault(key, inner)
            if earlier is not inner:
                inner.result.replace_uses(earlier.result)
                inner.erase()


class _Numbers:
    """Numbers for attributes, the same for equal ones: the bindings compare and hash them slowly."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, Any]] = {}  # by identity, with the attribute, which keeps it alive
        self._numbers: dict[Any, int] = {}

    def of(self, attr: Any) -> int:
        """The number of an attribute."""
        found = self._seen.get(id(attr))
        if found is None:
            found = self._seen[id(attr)] = self._numbers.setdefault(attr, len(self._numbers)), attr
        return found[0]


def _key(op: Op, numbers: _Numbers) -> Hashable:
    """What makes two ops the same; None for an op that is never merged."""
    is_expansion = op.name == _BROADCAST
    if op.block is None or (is_expansion and op.operands[0].type.shape != ()):
        return None
    attrs = tuple(sorted([(name, numbers.of(attr)) for name, attr in op.attrs.items()]))
    return attrs, op.block.region, (op.result.type, op.operands[0]) if is_expansion else None
