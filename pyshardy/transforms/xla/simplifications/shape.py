"""Ops that arrange elements: broadcasts, reshapes, transposes, slices, concatenations and the like."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from pyshardy.ir.constants import constant_of, is_splat, with_type
from pyshardy.ir.nodes import Op, Value, ValueType
from pyshardy.transforms.xla.simplifications.constants import LARGEST_FOLDED, Array, array_of, dtype_of, size_of
from pyshardy.transforms.xla.simplifier import Simplified, Simplifier

_Dims = tuple[int, ...]


def _dims(op: Op, name: str) -> _Dims:
    return tuple(op.attrs[name])


def _shape(value: Value) -> _Dims:
    return value.type.shape or ()


def _defined_by(value: Value, name: str) -> Op | None:
    owner = value.owner
    return owner if isinstance(owner, Op) and owner.name == name else None


def _rearranged(op: Op, to: Simplifier, arrange: Callable[[Array], Array]) -> Simplified:
    """Fold an op that reorders or selects the elements of a constant."""
    if constant_of(op.operands[0]) is None or not op.result.type.is_static:
        return None
    array = array_of(op.operands[0])
    if array is None or array.size > LARGEST_FOLDED:
        return None
    return to.constant(op, arrange(array) if array.ndim else array, op.result.type)


def broadcast_in_dim(op: Op, to: Simplifier) -> Simplified:
    """A broadcast of a single number or of a broadcast, or one that is a reshape or a transpose."""
    operand, type = op.operands[0], op.result.type
    attr = constant_of(operand)
    found = None if attr is None else _spread(attr, type, to)
    if found is not None:
        return to.constant_with(op, found, type)
    dims = _dims(op, "broadcast_dimensions")
    if operand.type is type and dims == tuple(range(type.rank)):
        return operand
    inner = _defined_by(operand, op.name)
    if inner is not None:
        merged = to.attrs.i64_array(tuple(dims[dim] for dim in _dims(inner, "broadcast_dimensions")))
        return to.make(op, op.name, inner.operands, type, broadcast_dimensions=merged)
    if not operand.type.is_static or prod(_shape(operand)) != prod(type.shape or ()):
        return None
    if list(dims) == sorted(dims):
        return to.make(op, "stablehlo.reshape", [operand], type)
    if operand.type.rank != type.rank:
        return None
    order = to.attrs.i64_array(tuple(dims.index(dim) for dim in range(type.rank)))
    return to.make(op, "stablehlo.transpose", [operand], type, permutation=order)


def _spread(attr: Any, type: ValueType, to: Simplifier) -> Any:
    """The attribute of a constant with the single number of another constant; None if that has several."""
    found = to.spread.get((attr, type))
    if found is None and is_splat(attr):
        found = to.spread[attr, type] = with_type(attr, type, to.attrs)
    return found


def reshape(op: Op, to: Simplifier) -> Simplified:
    """A reshape to the same shape, of a reshape, or of a constant."""
    operand, type = op.operands[0], op.result.type
    if operand.type is type:
        return operand
    inner = _defined_by(operand, op.name)
    if inner is not None:
        return to.make(op, op.name, inner.operands, type)
    return _rearranged(op, to, lambda array: array.reshape(type.shape or ()))


def transpose(op: Op, to: Simplifier) -> Simplified:
    """A transpose that keeps the order, or is of a transpose or a constant; later one that moves only sizes of 1."""
    operand, type = op.operands[0], op.result.type
    order = _dims(op, "permutation")
    if order == tuple(range(len(order))):
        return operand
    inner = _defined_by(operand, op.name)
    if inner is not None:
        before = _dims(inner, "permutation")
        merged = to.attrs.i64_array(tuple(before[dim] for dim in order))
        return to.make(op, op.name, inner.operands, type, permutation=merged)
    shape = _shape(operand)
    moved = [dim for dim in order if shape[dim] != 1]
    if moved == sorted(moved) and to.may_be_late():
        return to.make(op, "stablehlo.reshape", [operand], type)
    return _rearranged(op, to, lambda array: array.transpose(order))


def slice_of(op: Op, to: Simplifier) -> Simplified:
    """A slice of everything, of a constant, or of some operands of a concatenation."""
    operand, type = op.operands[0], op.result.type
    if operand.type is type:
        return operand
    starts, limits, strides = (_dims(op, name) for name in ("start_indices", "limit_indices", "strides"))
    found = _rearranged(op, to, lambda array: array[tuple(map(slice, starts, limits, strides))])
    if found is not None:
        return found
    joined = _defined_by(operand, "stablehlo.concatenate")
    return None if joined is None else _slice_of_joined(op, joined, starts, limits, to)


def _slice_of_joined(op: Op, joined: Op, starts: _Dims, limits: _Dims, to: Simplifier) -> Simplified:
    dim = joined.attrs["dimension"].value
    values: list[Value] = []
    begin = offset = 0
    for value in joined.operands:
        end = begin + _shape(value)[dim]
        if begin < limits[dim] and starts[dim] < end:
            offset = offset if values else begin
            values.append(value)
        begin = end
    if not values or len(values) == len(joined.operands):
        return None
    if len(values) > 1:
        if not to.has_one_use(joined.result):
            return None
        shape = list(_shape(values[0]))
        shape[dim] = sum(_shape(value)[dim] for value in values)
        type = to.attrs.ranked_type(tuple(shape), op.result.type)
        values = [to.make(op, joined.name, values, type, dimension=joined.attrs["dimension"])]
    moved = [
        to.attrs.i64_array((*bounds[:dim], bounds[dim] - offset, *bounds[dim + 1 :])) for bounds in (starts, limits)
    ]
    strides = op.attrs["strides"]
    return to.make(op, op.name, values, op.result.type, start_indices=moved[0], limit_indices=moved[1], strides=strides)


def concatenate(op: Op, to: Simplifier) -> Simplified:
    """A concatenation of one operand, of empty operands, of concatenations, or of constants."""
    if len(op.operands) == 1:
        return op.operands[0]
    attr = op.attrs["dimension"]
    dim = attr.value
    kept: list[Value] = []
    for value in op.operands:
        inner = _defined_by(value, op.name)
        if inner is not None and inner.attrs["dimension"].value == dim and to.has_one_use(value):
            kept += inner.operands
        elif _shape(value)[dim] != 0:
            kept.append(value)
    if kept and tuple(kept) != op.operands:
        return to.make(op, op.name, kept, op.result.type, dimension=attr)
    return _joined_constants(op, dim, to)


def _joined_constants(op: Op, dim: int, to: Simplifier) -> Simplified:
    if any(constant_of(value) is None for value in op.operands) or size_of(op.result.type) > LARGEST_FOLDED:
        return None
    arrays = []
    for value in op.operands:
        array = array_of(value)
        if array is None:
            return None
        arrays.append(np.broadcast_to(array, _shape(value)))
    return to.constant(op, np.concatenate(arrays, dim), op.result.type)


def iota(op: Op, to: Simplifier) -> Simplified:
    """An iota of several dimensions becomes a broadcast of a rank-1 iota; one along a single element becomes zero."""
    type, dim = op.result.type, op.attrs["iota_dimension"].value
    shape, dtype = type.shape or (), dtype_of(type.element)
    if not type.is_static or dtype is None:
        return None
    if shape[dim] == 1:
        return to.constant(op, np.zeros((), dtype), type)
    if type.rank < 2:
        return None
    line = to.make(op, op.name, (), to.attrs.ranked_type((shape[dim],), type), iota_dimension=to.attrs.i64(0))
    dims = to.attrs.i64_array((dim,))
    return to.make(op, "stablehlo.broadcast_in_dim", [line], type, broadcast_dimensions=dims)


def pad(op: Op, to: Simplifier) -> Simplified:
    """A pad that adds nothing, or of an empty tensor."""
    operand, type = op.operands[0], op.result.type
    if not operand.type.is_static:
        return None
    if 0 in _shape(operand):
        dims = to.attrs.i64_array(())
        return to.make(op, "stablehlo.broadcast_in_dim", [op.operands[1]], type, broadcast_dimensions=dims)
    edges = (*_dims(op, "edge_padding_low"), *_dims(op, "edge_padding_high"))
    if operand.type is type and not any(edges) and not any(_dims(op, "interior_padding")):
        return operand
    return None


def reverse(op: Op, to: Simplifier) -> Simplified:
    """A reverse along dimensions of one element, or of a constant."""
    operand = op.operands[0]
    shape, dims = _shape(operand), _dims(op, "dimensions")
    array = None if constant_of(operand) is None else array_of(operand)
    if array is None:
        return operand if all(shape[dim] == 1 for dim in dims) else None
    return operand if array.ndim == 0 else to.constant(op, np.flip(array, dims), op.result.type)


def reduce(op: Op, to: Simplifier) -> Simplified:
    """A reduction along no dimension, or by a logical "and" or "or" of a constant whose elements are equal."""
    if not _dims(op, "dimensions"):
        return op.operands[: len(op.results)]
    body = list(op.regions[0].blocks[0])
    combine = _LOGICAL.get(body[0].name)
    if combine is None or len(body) != 2 or list(body[0].operands) != list(op.regions[0].blocks[0].args):
        return None
    arrays = [array_of(operand) for operand in op.operands]
    if len(arrays) != 2 or any(array is None or array.ndim for array in arrays):
        return None
    return to.constant(op, combine(*arrays), op.result.type)


_LOGICAL: dict[str, Callable[..., Array]] = {"stablehlo.and": np.bitwise_and, "stablehlo.or": np.bitwise_or}
