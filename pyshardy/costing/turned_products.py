"""Copies products that meet others in another order of dimensions, as XLA for GPUs does.

The scores of grouped heads and their gradients have no order in common. The later product is copied into the order of
the earlier one, after it is converted: in f32, for a softmax in f32. If one op alone reads the copy, its kernel makes
it; if several do, it is an array.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyshardy.costing.flat import KEPT_COPY, Flat, FlatBlock, FlatOp
from pyshardy.costing.flatten import without_dead
from pyshardy.costing.orders import CHAINED, DimOrder, find_orders
from pyshardy.costing.program import CostKind, CostOp, CostTensor

_READ_THROUGH = CHAINED | {"stablehlo.transpose"}
"""Ops that a copy computes as well."""


def with_turned_products(flat: Flat) -> Flat:
    """A program with copies of products that several ops read in the order of others.

    Args:
        flat: The program.
    """
    orders = find_orders(flat)
    if not orders.turned:
        return flat
    tensors = list(flat.tensors)
    turned = {value: orders.of[value] for value in orders.turned if value in orders.of}
    return flat._replace(body=without_dead(_block(flat.body, turned, tensors)), tensors=tensors)


def _block(block: FlatBlock, turned: Mapping[int, DimOrder], tensors: list[CostTensor]) -> FlatBlock:
    makers = {one.op.results[0]: one.op for one in block.ops if len(one.op.results) == 1}
    readers: dict[int, int] = {}
    for one in block.ops:
        for value in dict.fromkeys(one.op.operands):
            readers[value] = readers.get(value, 0) + 1
    ops: list[FlatOp] = []
    for one in block.ops:
        if any(value in turned and readers.get(value, 0) > 1 for value in one.op.results):
            ops += _copied(one.op, turned, makers, tensors)
        else:
            ops.append(one._replace(inner=tuple([_block(region, turned, tensors) for region in one.inner])))
    return block._replace(ops=tuple(ops))


def _copied(
    op: CostOp, turned: Mapping[int, DimOrder], makers: Mapping[int, CostOp], tensors: list[CostTensor]
) -> list[FlatOp]:
    """An op with a copy of its result; conversions and the transpose of a product are parts of the copy."""
    before: list[FlatOp] = []
    if op.kind.name in _READ_THROUGH:
        (value,) = op.operands
    else:
        tensors.append(op.kind.results[0])
        value = len(tensors) - 1
        before.append(FlatOp(op._replace(results=(value,))))
    while (maker := makers.get(value)) is not None and maker.kind.name in _READ_THROUGH:
        (value,) = maker.operands
    kind = CostKind(KEPT_COPY, (tensors[value],), op.kind.results, (("order", turned[op.results[0]]),))
    return [*before, FlatOp(CostOp(kind, (value,), op.results, place=op.place))]
