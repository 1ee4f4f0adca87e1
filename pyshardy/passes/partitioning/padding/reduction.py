"""Padding of reductions (partitioner spec, section 5.4)."""

from __future__ import annotations

from pyshardy.ir.nodes import Op, Value
from pyshardy.passes.partitioning.padding.constants import splat_of
from pyshardy.passes.partitioning.padding.padder import Padder, Padding


def pad_reduce(op: Op, padder: Padder) -> None:
    """`reduce`: what is reduced besides the data is the initial value, whatever the reducer is."""
    count = len(op.operands) // 2
    dims = tuple(op.attrs["dimensions"])
    for index, init in enumerate(op.operands[count:]):
        op.set_operand(index, _masked(op.operands[index], init, op, padder, dims))
    for result in op.results:
        padder.pad_result(result)


def _masked(value: Value, init: Value, op: Op, padder: Padder, dims: tuple[int, ...]) -> Value:
    if value not in padder.originals:
        return value
    if splat_of(init) is Padding.ZERO and padder.paddings.get(value) is Padding.ZERO:
        return value
    return padder.masked(value, op, lambda: init, dims)
