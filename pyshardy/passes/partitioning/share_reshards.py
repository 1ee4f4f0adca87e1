"""`pyshardy-share-reshards`: what is resharded alike for several ops is resharded once."""

from __future__ import annotations

from typing import Any

from pyshardy.ir.nodes import Block, Op
from pyshardy.passes.base import Anchor, Pass, PassContext

_SHARED = frozenset(
    f"sdy.{name}"
    for name in (
        "reshard", "all_gather", "all_slice", "all_to_all", "collective_permute", "all_reduce", "reduce_scatter",
        "sharded_to_unreduced", "replicated_to_unreduced",
    )
)  # fmt: skip
_Key = tuple[Any, ...]


class ShareReshards(Pass):
    """Let all ops that need a value resharded in the same way use the first reshard, where that is done before them.

    The same for collectives. Loops and branches see what stands before them; a manual computation sees its own alone.
    """

    name = "pyshardy-share-reshards"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for region in op.regions:
            for block in region.blocks:
                _share(block, {})


def _share(block: Block, known: dict[_Key, Op]) -> None:
    for op in block:
        if op.name in _SHARED:
            key = _key(op)
            first = known.get(key)
            if first is None:
                known[key] = op
            else:
                op.result.replace_uses(first.result)
                op.erase()
            continue
        for region in op.regions:
            for inner in region.blocks:
                _share(inner, {} if op.name == "sdy.manual_computation" else dict(known))


def _key(op: Op) -> _Key:
    return op.name, op.operands[0], tuple(sorted(op.attrs.items(), key=lambda item: item[0]))
