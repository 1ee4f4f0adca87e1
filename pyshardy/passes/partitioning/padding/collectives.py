"""Padding around explicit collectives (partitioner spec, section 5.4)."""

from __future__ import annotations

from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.nodes import Op
from pyshardy.passes.partitioning.padding.padder import Padder, shape_of


def pad_slicing(op: Op, padder: Padder) -> None:
    """`all_slice` and `reduce_scatter`: pad the operand first."""
    _pad_operand(op, padder)


def pad_all_to_all(op: Op, padder: Padder) -> None:
    """`all_to_all`: pad the dimensions that axes move to, trim those they come from."""
    _pad_operand(op, padder)
    _trim(op, padder)


def pad_gathering(op: Op, padder: Padder) -> None:
    """`all_gather` and `sharded_to_unreduced`: trim the result."""
    _take_shape(op, padder)
    _trim(op, padder)


def pad_in_place(op: Op, padder: Padder) -> None:
    """`all_reduce`, `collective_permute`, ...: the same shape before and after."""
    padder.pad_result(op.result)


def _pad_operand(op: Op, padder: Padder) -> None:
    value = op.operands[0]
    wanted = padder.padded_shape(value, _out_sharding(op))
    shape = [max(size, needed) for size, needed in zip(shape_of(value), wanted)]
    op.set_operand(0, padder.pad(value, shape, op))
    _take_shape(op, padder)


def _take_shape(op: Op, padder: Padder) -> None:
    """Give the result the shape of the operand."""
    value = op.operands[0]
    padder.set_shape(op.result, shape_of(value))
    if value in padder.paddings:
        padder.paddings[op.result] = padder.paddings[value]


def _trim(op: Op, padder: Padder) -> None:
    sharding = _out_sharding(op)
    if padder.padded_shape(op.result, sharding) != shape_of(op.result):
        padder.trim(op, sharding)


def _out_sharding(op: Op) -> TensorSharding:
    found: TensorSharding = op.attrs["out_sharding"]
    return found
