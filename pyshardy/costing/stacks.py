"""Gathers a stack that is sharded on the dimension from which slices are taken, as XLA's partitioner does.

Layers may be stacked for a scan, and sharded on the dimension of layers. `pyshardy` then moves the sharding to another
dimension, takes a slice, and gathers the slice. XLA gathers the whole stack in every round of the loop. With n layers
it sends n times as much, and it holds all of them.
"""

from __future__ import annotations

from dataclasses import replace

from pyshardy.costing.program import CostBlock, CostKind, CostOp, CostProgram, CostTensor, uses_of, with_blocks

_SLICE = "stablehlo.dynamic_slice"


def with_whole_stacks(program: CostProgram) -> CostProgram:
    """The program with stacks gathered where slices of them are gathered after an exchange.

    Args:
        program: The program of one device.
    """
    tensors = list(program.tensors)
    found = with_blocks(program, lambda block: _block(block, tensors))
    return found if found is program else replace(found, tensors=tuple(tensors))


def _block(block: CostBlock, tensors: list[CostTensor]) -> CostBlock:
    exchanges = {op.results[0]: op for op in block.ops if op.traffic is not None and op.traffic.kind == "all_to_all"}
    if not exchanges:
        return block
    uses = uses_of(block)
    slices = {op.results[0]: op for op in block.ops if op.kind.name == _SLICE}
    instead: dict[int, CostOp] = {}  # by the result of the op that is replaced
    dropped: set[int] = set()
    for op in block.ops:
        taken = slices.get(op.operands[0]) if op.operands and op.traffic is not None else None
        exchange = None if taken is None else exchanges.get(taken.operands[0])
        if taken is None or exchange is None or not _is_undone(exchange, taken, op):
            continue
        if uses[exchange.results[0]] != 1 or uses[taken.results[0]] != 1:
            continue
        gathered = _gathered(exchange, op)
        tensors[exchange.results[0]] = gathered.kind.results[0]
        kind = CostKind(
            taken.kind.name, (*gathered.kind.results, *taken.kind.operands[1:]), op.kind.results, taken.kind.facts
        )
        instead[exchange.results[0]] = gathered
        instead[op.results[0]] = taken._replace(kind=kind, results=op.results)
        dropped.add(taken.results[0])
    if not instead:
        return block
    kept = [op for op in block.ops if not (op.results and op.results[0] in dropped)]
    return block._replace(ops=tuple([instead.get(op.results[0], op) if op.results else op for op in kept]))


def _is_undone(exchange: CostOp, taken: CostOp, gather: CostOp) -> bool:
    """Whether a gather takes back what an exchange did to the dimensions that are not sliced."""
    if exchange.traffic is None or gather.traffic is None or gather.traffic.kind != "all_gather":
        return False
    if len(exchange.operands) != 1 or len(gather.operands) != 1 or exchange.traffic.axes != gather.traffic.axes:
        return False
    stacked, split = exchange.kind.fact("concat_dimension"), exchange.kind.fact("split_dimension")
    before, after = taken.kind.operands[0].shape or (), taken.kind.results[0].shape or ()
    is_sliced = isinstance(stacked, int) and after[stacked] < before[stacked]
    return is_sliced and split == gather.kind.fact("all_gather_dim")


def _gathered(exchange: CostOp, gather: CostOp) -> CostOp:
    """A gather of the stack in place of the exchange."""
    assert exchange.traffic is not None
    stack = exchange.kind.operands[0]
    size, place = exchange.traffic.group_size, exchange.kind.fact("concat_dimension")
    shape = tuple([one * size if dim == place else one for dim, one in enumerate(stack.shape or ())])
    whole = CostTensor(shape, stack.dtype, stack.bytes * size)
    traffic = replace(
        exchange.traffic,
        kind="all_gather",
        bytes_after=whole.bytes,
        sent_bytes=whole.bytes - exchange.traffic.bytes_before,
    )
    kind = CostKind(gather.kind.name, (stack,), (whole,), (("all_gather_dim", place),))
    return exchange._replace(kind=kind, traffic=traffic)
