"""Padding of reductions.

Source: docs/semantics/partitioner.md#padding-of-ops
"""

from __future__ import annotations

from pyshardy.ir.nodes import Op, Value
from pyshardy.transforms.padding.constants import filler_of
from pyshardy.transforms.padding.padder import Padder, Padding
from pyshardy.transforms.reduction_kinds import combiners, neutral_text


def pad_reduce(op: Op, padder: Padder) -> None:
    """`reduce`: the padding becomes the initial value, or the identity if the initial value must count only once."""
    count = len(op.operands) // 2
    names = combiners(op) or (None,) * count
    dims = tuple(op.attrs["dimensions"])
    for index, (name, init) in enumerate(zip(names, op.operands[count:])):
        op.set_operand(index, _masked(op.operands[index], init, name, op, padder, dims))
    for result in op.results:
        padder.pad_result(result)


def _masked(value: Value, init: Value, name: str | None, op: Op, padder: Padder, dims: tuple[int, ...]) -> Value:
    if value not in padder.originals:
        return value
    if filler_of(init) is Padding.ZERO and padder.paddings.get(value) is Padding.ZERO:
        return value
    if not set(dims) & set(padder.padded_dims(value)):
        return value
    text = neutral_text(name, init, padder.context.attrs)
    return padder.masked(value, op, lambda: init if text is None else padder.builder(op).splat(text, init.type), dims)
