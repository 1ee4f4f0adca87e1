"""Makes one reduce-scatter of an all-reduce of which every device keeps its slice, as XLA does after partitioning."""

from __future__ import annotations

from dataclasses import replace

from pyshardy.costing.program import CostBlock, CostKind, CostOp, CostProgram, uses_of, with_blocks

_ALL_REDUCE, _REDUCE_SCATTER = "stablehlo.all_reduce", "stablehlo.reduce_scatter"
_SLICE, _CONSTANT = "stablehlo.dynamic_slice", "stablehlo.constant"


def with_reduce_scatters(program: CostProgram) -> CostProgram:
    """The program with a reduce-scatter for each all-reduce that only a slice of one device's part reads.

    Args:
        program: The program of one device.
    """
    return with_blocks(program, _block)


def _block(block: CostBlock) -> CostBlock:
    ops = block.ops
    sums = {op.results[0]: op for op in ops if op.kind.name == _ALL_REDUCE and op.traffic and len(op.results) == 1}
    if not sums:
        return block
    uses = uses_of(block)
    fixed = {value for op in ops if op.kind.name == _CONSTANT for value in op.results}
    parts = {
        op.operands[0]: op
        for op in ops
        if op.kind.name == _SLICE and op.operands[0] in sums and uses[op.operands[0]] == 1
        if _is_part(op, sums[op.operands[0]]) and not fixed.issuperset(op.operands[1:])
    }
    kinds: dict[tuple[CostKind, CostKind], CostKind] = {}
    found = []
    for op in ops:
        if op.results and op.results[0] in parts:
            continue
        is_part = op.kind.name == _SLICE and parts.get(op.operands[0]) is op
        found.append(_scatter(sums[op.operands[0]], op, kinds) if is_part else op)
    return block._replace(ops=tuple(found))


def _is_part(part: CostOp, total: CostOp) -> bool:
    """Whether a slice is as large as the part of one device of the group that adds."""
    assert total.traffic is not None
    return part.kind.results[0].bytes * total.traffic.group_size == total.kind.results[0].bytes


def _scatter(total: CostOp, part: CostOp, kinds: dict[tuple[CostKind, CostKind], CostKind]) -> CostOp:
    """One op that adds and scatters. It runs where the slice was."""
    traffic, after = total.traffic, part.kind.results[0].bytes
    assert traffic is not None
    kind = kinds.setdefault(
        (total.kind, part.kind), CostKind(_REDUCE_SCATTER, total.kind.operands, part.kind.results, total.kind.facts)
    )
    less = replace(traffic, kind="reduce_scatter", bytes_after=after, sent_bytes=traffic.bytes_before - after)
    return total._replace(kind=kind, results=part.results, traffic=less)
