"""Merges equal collectives, as XLA for TPUs does after it partitions.

Two permutations of one value over the same pairs are one wherever they stand. Two all-gathers of one value are one if
the result does not wait long for its second reader. The measure is the longest path from each of them to the end of the
block, in ops: the two may differ little.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyshardy.costing.program import CostBlock, CostOp, CostProgram, read_by, with_blocks


def with_equal_collectives_merged(program: CostProgram, most_ops: int) -> CostProgram:
    """A program in which equal all-gathers and permutations are one.

    Args:
        program: The program of one device.
        most_ops: By how many ops the longest paths from two all-gathers to the end of their block may differ.
    """
    return with_blocks(program, partial(_merged, most_ops=most_ops))


def _merged(block: CostBlock, most_ops: int) -> CostBlock:
    keys = [_key(op) for op in block.ops]
    known = [key for key in keys if key is not None]
    if len(known) == len(set(known)):
        return block
    ahead = _ahead(block)
    first: dict[object, list[int]] = {}
    same: dict[int, int] = {}
    ops = []
    for op, key in zip(block.ops, keys):
        if key is not None:
            twins = first.setdefault(key, [])
            (value,) = op.results
            here, is_anywhere = ahead.get(value, 0), _is_permutation(op)
            near = [twin for twin in twins if is_anywhere or abs(here - ahead.get(twin, 0)) <= most_ops]
            if near:
                same[value] = near[0]
                continue
            twins.append(value)
        ops.append(op)
    return _renumbered(block._replace(ops=tuple(ops)), same)


def _key(op: CostOp) -> object:
    """What equal collectives have in common; None for other ops, and where not all that one does is known."""
    if op.traffic is None or len(op.results) != 1:
        return None
    is_known = _is_permutation(op) or (op.traffic.kind == "all_gather" and op.traffic.axes is not None)
    return (op.kind, op.traffic, op.operands) if is_known else None


def _is_permutation(op: CostOp) -> bool:
    return op.traffic is not None and op.traffic.kind == "collective_permute"


def _ahead(block: CostBlock) -> dict[int, int]:
    """The number of ops on the longest path from each value to the end of a block."""
    ahead: dict[int, int] = {}
    for op in reversed(block.ops):
        length = 1 + max((ahead.get(value, 0) for value in op.results), default=0)
        for value in read_by(op):
            ahead[value] = max(ahead.get(value, 0), length)
    return ahead


def _renumbered(block: CostBlock, same: Mapping[int, int]) -> CostBlock:
    """A block, and those inside, that read other values instead of some."""

    def new(values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([same.get(value, value) for value in values])

    ops = [
        op._replace(operands=new(op.operands), regions=tuple([_renumbered(region, same) for region in op.regions]))
        for op in block.ops
    ]
    return block._replace(ops=tuple(ops), results=new(block.results))
