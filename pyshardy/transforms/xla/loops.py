"""Removes values that a loop never changes from its state."""

from __future__ import annotations

from pyshardy.ir.functions import SHARDING
from pyshardy.ir.nodes import Block, Op


def without_invariants(op: Op) -> Op | None:
    """Replace a loop by one whose state has only values that may change; None if all of them may.

    If no value changes, nothing uses the loop any more, so it is dead.
    """
    cond, body = (region.block for region in op.regions)
    returned = body.terminator.operands
    kept = []
    for index, value in enumerate(returned):
        arg = body.args[index]
        if value is arg or value is op.operands[index]:
            outer = op.operands[index]
            arg.replace_uses(outer)
            cond.args[index].replace_uses(outer)
            op.results[index].replace_uses(outer)
        else:
            kept.append(index)
    if len(kept) in (0, len(returned)):
        return None
    return _with_only(op, kept)


def _with_only(op: Op, kept: list[int]) -> Op:
    attrs = op.attrs
    if SHARDING in attrs:
        attrs = attrs.with_value(SHARDING, tuple(attrs[SHARDING][index] for index in kept))
    made = Op(
        op.name, [op.operands[i] for i in kept], [op.results[i].type for i in kept], attrs, len(op.regions), op.place
    )
    terminator = op.regions[1].block.terminator
    values = [terminator.operands[i] for i in kept]
    terminator.detach()
    terminator.drop_operands()
    for region, old in zip(made.regions, op.regions):
        region.take_body(old)
        keep_args(region.block, kept)
    made.regions[1].block.append(Op(terminator.name, values, (), terminator.attrs, 0, terminator.place))
    made.insert_before(op)
    for result, index in zip(made.results, kept):
        op.results[index].replace_uses(result)
    op.erase()
    return made


def keep_args(block: Block, kept: list[int]) -> None:
    """Remove all arguments of a block except those with these numbers."""
    args = [block.args[index] for index in kept]
    for number, arg in enumerate(args):
        arg.index = number
    block.args[:] = args
