"""Moves sums over devices behind the loop that adds them up, as XLA for TPUs and GPUs does.

A loop may sum an array over devices in each round, only to add it to a part of its state. If nothing else reads that
part, each device can add its own array in the rounds. One sum over devices then follows the loop.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from pyshardy.costing.program import CostBlock, CostOp, CostProgram, CostTensor, uses_of, with_blocks
from pyshardy.rules.opspec import op_names

_ADD = "stablehlo.add"
_BETWEEN = frozenset(op_names("stablehlo.", "reshape transpose"))
"""Ops that may stand between the sum over devices and the addition."""


def with_moved_sums(program: CostProgram) -> CostProgram:
    """The program with sums over devices that loops only add up after these loops.

    Args:
        program: The program of one device.
    """
    tensors = list(program.tensors)

    def changed(block: CostBlock) -> CostBlock:
        if not any(op.is_loop for op in block.ops):
            return block
        ops: list[CostOp] = []
        for op in block.ops:
            ops += _moved(op, tensors) if op.is_loop else (op,)
        return block if len(ops) == len(block.ops) else block._replace(ops=tuple(ops))

    found = with_blocks(program, changed)
    return found if found is program else replace(found, tensors=tuple(tensors))


def _moved(loop: CostOp, tensors: list[CostTensor]) -> list[CostOp]:
    """The loop, and the sums that follow it."""
    condition, body = loop.regions
    uses = uses_of(body)
    asked = Counter(value for op in condition.ops for value in op.operands)
    makers = {op.results[0]: op for op in body.ops if len(op.results) == 1}
    instead: dict[int, int] = {}  # the results of sums that are moved, and what they sum
    results = list(loop.results)
    sums: list[CostOp] = []
    for place, (argument, result) in enumerate(zip(body.arguments, body.results)):
        addition = makers.get(result)
        if addition is None or addition.kind.name != _ADD or uses[argument] != 1 or uses[result] != 1:
            continue
        if argument not in addition.operands or asked[condition.arguments[place]]:
            continue
        added = next((value for value in addition.operands if value != argument), None)
        summed = _sum_behind(added, makers, uses)
        if summed is None or summed.results[0] in instead:
            continue
        instead[summed.results[0]] = summed.operands[0]
        tensors.append(tensors[results[place]])
        before, results[place] = len(tensors) - 1, len(tensors) - 1
        sums.append(summed._replace(operands=(before,), results=(loop.results[place],)))
    if not instead:
        return [loop]
    kept = tuple(
        [
            op._replace(operands=tuple([instead.get(value, value) for value in op.operands]))
            for op in body.ops
            if not (op.results and op.results[0] in instead)
        ]
    )
    return [loop._replace(results=tuple(results), regions=(condition, body._replace(ops=kept))), *sums]


def _sum_behind(value: int | None, makers: dict[int, CostOp], uses: Counter[int]) -> CostOp | None:
    """The sum over devices that alone gives a value; None if there is none."""
    while value is not None and (op := makers.get(value)) is not None and uses[value] == 1:
        if op.traffic is not None:
            is_sum = op.traffic.kind == "all_reduce" and op.kind.fact("body") == (_ADD,)
            return op if is_sum and len(op.operands) == 1 else None
        if op.kind.name not in _BETWEEN:
            return None
        value = op.operands[0]
    return None
