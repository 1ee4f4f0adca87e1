"""Ops with dynamic indices whose indices are constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyshardy.ir.constants import constant_of
from pyshardy.ir.nodes import Op, Value, ValueType
from pyshardy.transforms.local.indexing import gather_numbers
from pyshardy.transforms.xla.simplifications.constants import array_of
from pyshardy.transforms.xla.simplifier import Simplified, Simplifier


def _starts(values: Sequence[Value]) -> list[int] | None:
    """The numbers of scalar constants, read as signed numbers as in XLA; None if any value is not a constant."""
    found = []
    for value in values:
        array = None if constant_of(value) is None else array_of(value)
        if array is None:
            return None
        found.append(int(array.view(f"i{array.itemsize}")))
    return found


def _sliced(op: Op, starts: Sequence[int], sizes: Sequence[int], type: ValueType, to: Simplifier) -> Value:
    """A slice of the first operand at `starts`, clamped to its bounds."""
    shape = op.operands[0].type.shape or ()
    begins = [min(max(start, 0), whole - size) for start, whole, size in zip(starts, shape, sizes)]
    array = to.attrs.i64_array
    return to.make(
        op,
        "stablehlo.slice",
        op.operands[:1],
        type,
        start_indices=array(tuple(begins)),
        limit_indices=array(tuple(begin + size for begin, size in zip(begins, sizes))),
        strides=array((1,) * len(begins)),
    )


def dynamic_slice(op: Op, to: Simplifier) -> Simplified:
    """A dynamic slice with constant indices is a slice."""
    starts = _starts(op.operands[1:])
    return None if starts is None else _sliced(op, starts, op.result.type.shape or (), op.result.type, to)


def dynamic_update_slice(op: Op, to: Simplifier) -> Simplified:
    """An update of everything, or of nothing."""
    operand, update = op.operands[:2]
    if 0 in (update.type.shape or ()):
        return operand
    if update.type is not operand.type:
        return None
    starts = _starts(op.operands[2:])
    return update if starts is not None and not any(starts) else None


def gather(op: Op, to: Simplifier) -> Simplified:
    """A gather of one window at constant indices is a slice."""
    operand, indices = op.operands
    if constant_of(indices) is None or indices.type.rank != 1:
        return None
    numbers, found = gather_numbers(op), array_of(indices)
    if found is None or numbers.vector_dim != 0 or numbers.input_batching:
        return None
    sizes = tuple(op.attrs["slice_sizes"])
    starts = [0] * len(sizes)
    for dim, index in zip(numbers.indexed, np.broadcast_to(found, indices.type.shape or ())):
        starts[dim] = int(index)
    type = to.attrs.ranked_type(sizes, op.result.type)
    value = _sliced(op, starts, sizes, type, to)
    return value if type is op.result.type else to.make(op, "stablehlo.reshape", [value], op.result.type)
