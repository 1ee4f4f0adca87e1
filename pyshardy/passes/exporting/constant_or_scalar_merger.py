"""`sdy-constant-or-scalar-merger`: undoes the splitting of constants where shardings agree (export spec, 4.1)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from pyshardy.ir.nodes import Op, walk_post_order
from pyshardy.passes.base import Anchor, Pass, PassContext

_CONSTANTS = frozenset(("sdy.constant", "stablehlo.constant", "mhlo.constant", "chlo.constant", "arith.constant"))
_BROADCAST = "stablehlo.broadcast_in_dim"


@dataclass(frozen=True)
class ConstantOrScalarMerger(Pass):
    """Merge equal constants, and equal broadcasts of one scalar, within a region."""

    name = "sdy-constant-or-scalar-merger"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        first: dict[Hashable, Op] = {}
        for inner in walk_post_order(op):
            key = _key(inner)
            if key is None:
                continue
            earlier = first.setdefault(key, inner)
            if earlier is not inner:
                inner.result.replace_uses(earlier.result)
                inner.erase()


def _key(op: Op) -> Hashable:
    """What makes two ops the same; None for an op that is never merged."""
    is_expansion = op.name == _BROADCAST and op.operands[0].type.shape == ()
    if op.block is None or not (is_expansion or op.name in _CONSTANTS):
        return None
    attrs = tuple(sorted(op.attrs.items(), key=lambda entry: entry[0]))
    return attrs, op.block.region, (op.result.type, op.operands[0]) if is_expansion else None
