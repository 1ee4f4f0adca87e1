"""Adds partial sums before they are reduced over devices, as XLA does: one all-reduce of a sum instead of several."""

from __future__ import annotations

from pyshardy.costing.program import CostBlock, CostOp, CostProgram, uses_of, with_blocks

_ALL_REDUCE, _ADD = "stablehlo.all_reduce", "stablehlo.add"


def with_added_partial_sums(program: CostProgram) -> CostProgram:
    """The program with one all-reduce where it adds the results of several over the same devices.

    A result of an all-reduce that anything else reads stays as it is.

    Args:
        program: The program of one device.
    """
    return with_blocks(program, _block)


def _block(block: CostBlock) -> CostBlock:
    ops = block.ops
    uses = uses_of(block)
    sums: dict[int, CostOp] = {}
    found: dict[int, CostOp] = {}  # by the position of what is kept, in order
    at: dict[int, int] = {}
    for place, op in enumerate(ops):
        parts = [sums.get(value) for value in op.operands] if op.kind.name == _ADD else []
        first, second = parts if len(parts) == 2 else (None, None)
        if first is not None and second is not None and first is not second and _key(first) == _key(second):
            for part in (first, second):
                del found[at[part.results[0]]]
            added = op._replace(operands=(first.operands[0], second.operands[0]), results=first.results)
            op = first._replace(operands=first.results, results=op.results)
            found[2 * place] = added
        if _key(op) is not None and uses[op.results[0]] == 1:
            sums[op.results[0]] = op
            at[op.results[0]] = 2 * place + 1
        found[2 * place + 1] = op
    return block._replace(ops=tuple(found.values()))


def _key(op: CostOp) -> object:
    """What all-reduces must have in common; None for what is not a sum of one array over devices."""
    if op.kind.name != _ALL_REDUCE or op.traffic is None or len(op.results) != 1:
        return None
    traffic = op.traffic
    is_sum = op.kind.fact("body") == (_ADD,)
    return (traffic.mesh, traffic.axes, traffic.group_size, op.kind) if is_sum else None
