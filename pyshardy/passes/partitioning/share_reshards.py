"""`pyshardy-share-reshards`: merges equal reshards of one value."""

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
    """Merge equal reshards of a value into the first of them, where the first one has run before the others.

    Equal collectives are merged too. Loops and branches can use reshards before them; a manual computation can use only
    its own.
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
    """The blocks in which everything before an op has run before it."""
    while op.block is not None:
        yield op.block
        outer = op.parent_op
        if outer is None or outer.name == _OWN_WORLD:
            return
        op = outer


def _key(op: Op) -> _Key:
    return op.name, op.operands[0], tuple(sorted(op.attrs.items(), key=lambda item: item[0]))
