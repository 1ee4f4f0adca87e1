"""`pyshardy-share-reshards`: what is resharded alike for several ops is resharded once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyshardy.ir.nodes import Block, Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.passes.base import Anchor, Pass
from pyshardy.rules.properties import RESHARDING_COLLECTIVES
from pyshardy.transforms.context import PassContext

_SHARED = RESHARDING_COLLECTIVES | {"sdy.reshard"}
_OWN_WORLD = "sdy.manual_computation"
_Key = tuple[Any, ...]


class ShareReshards(Pass):
    """Let all ops that need a value resharded in the same way use the first reshard, where that is done before them.

    The same for collectives. Loops and branches see what stands before them; a manual computation sees its own alone.
    """

    name = "pyshardy-share-reshards"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        known: dict[Block, dict[_Key, Op]] = {}
        for shared in ops_named(op, _SHARED):
            key = _key(shared)
            first = next((known[block][key] for block in _visible(shared) if key in known.get(block, ())), None)
            if first is None:
                assert shared.block is not None
                known.setdefault(shared.block, {})[key] = shared
            else:
                shared.result.replace_uses(first.result)
                shared.erase()


def _visible(op: Op) -> Iterator[Block]:
    """The blocks whose ops before an op are done before it."""
    while op.block is not None:
        yield op.block
        outer = op.parent_op
        if outer is None or outer.name == _OWN_WORLD:
            return
        op = outer


def _key(op: Op) -> _Key:
    return op.name, op.operands[0], tuple(sorted(op.attrs.items(), key=lambda item: item[0]))
