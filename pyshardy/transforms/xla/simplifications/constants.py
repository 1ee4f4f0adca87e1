"""Constants as NumPy arrays and back, and constant folding."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from pyshardy.ir.blocks import Value
from pyshardy.ir.constants import comparison_direction, constant_of, splat_attribute, splat_of
from pyshardy.ir.op import Op
from pyshardy.ir.value_type import ValueType

CONSTANT = "stablehlo.constant"
LARGEST_FOLDED = 65536
"""The most elements of a folded result, if a constant has different elements."""
Array = np.ndarray[Any, Any]
_NUMPY = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "i1": np.bool_,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
}  # fmt: skip
_AS_BITS = ("bf16", "f16")


def size_of(type: ValueType) -> int:
    """Number of elements of a tensor of static shape."""
    return prod(type.shape or ())


def dtype_of(element: str) -> np.dtype[Any] | None:
    """The NumPy type for MLIR's name of an element type; None if there is none."""
    if element == "bf16":
        import ml_dtypes  # few programs need it

        bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    found = _NUMPY.get(element)
    return None if found is None else np.dtype(found)


def array_of(value: Value) -> Array | None:
    """The elements of a constant, or a single one if all are equal; None without a constant or without a NumPy type."""
    attr: Any = constant_of(value)
    dtype = None if attr is None else dtype_of(value.type.element)
    if dtype is None:
        return None
    splat = splat_of(value)
    if splat is not None:
        if dtype.kind not in "iu":
            return np.array(splat, dtype)
        return np.array(splat % (1 << 8 * dtype.itemsize), f"u{dtype.itemsize}").astype(dtype)
    if type(attr) not in (ir.DenseFPElementsAttr, ir.DenseIntElementsAttr):
        return None
    if value.type.element == "bf16":
        return _bfloat16(str(attr)).view(dtype).reshape(value.type.shape or ())
    return np.array(attr) if all(value.type.shape or ()) else None  # numpy counts what it cannot address


_NUMBER = re.compile(r"0x[0-9A-F]{4}\b|[-+]?\d+\.\d+(?:[eE][-+]?\d+)?")


def _bfloat16(text: str) -> Array:
    """The bits of the elements of a bf16 constant, parsed from text, because the bindings give no other access."""
    values = text.partition("dense<")[2].rpartition(">")[0]
    values = values.rpartition("> : tensor")[0] or values
    if values.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(values[3:-1]), np.uint16)
    found = _NUMBER.findall(values)
    rounded = np.array([0.0 if number.startswith("0x") else float(number) for number in found], np.float32)
    bits = rounded.astype(dtype_of("bf16")).view(np.uint16)
    bits[[index for index, number in enumerate(found) if number.startswith("0x")]] = [
        int(number, 16) for number in found if number.startswith("0x")
    ]
    return bits


def attribute_of(array: Array, type: ValueType) -> Any:
    """A constant of this type with these elements, or with the single element that is given."""
    if array.ndim == 0 or _is_uniform(array):
        return splat_attribute(_scalar(array.flat[0], type), type)
    whole: Any = np.ascontiguousarray(array)
    if type.element == "i1":
        return ir.DenseElementsAttr.get(whole).maybe_downcast()
    element = ir.RankedTensorType(type.mlir).element_type
    bits = whole.view(np.uint16) if type.element in _AS_BITS else whole
    return ir.DenseElementsAttr.get(bits, type=element, shape=list(array.shape)).maybe_downcast()


def _is_uniform(array: Array) -> bool:
    """Whether all elements have the same bits; the two zeros differ."""
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    return bool(array.size) and bool((bits == bits.flat[0]).all())


def _scalar(value: Any, type: ValueType) -> Any:
    element = ir.RankedTensorType(type.mlir).element_type
    if isinstance(element, ir.FloatType):
        return ir.FloatAttr.get(element, float(value), loc=ir.Location.unknown())
    number = int(value)
    if type.element in ("ui64", "i64") and number >= 1 << 63:
        number -= 1 << 64  # the same bits; the bindings accept only these types
    return ir.IntegerAttr.get(element, number)


# Constant folding as in XLA

Function = Callable[..., Any]


def _divide(a: Array, b: Array) -> Any:
    if a.dtype.kind not in "iu":
        return a / b
    if not np.all(b):
        return None
    wide = a.astype(object), b.astype(object)
    sign = np.where((a < 0) != (b < 0), -1, 1)
    return (np.abs(wide[0]) // np.abs(wide[1])) * sign


def _remainder(a: Array, b: Array) -> Any:
    return None if a.dtype.kind in "iu" and not np.all(b) else np.fmod(a, b)


def _away_from_zero(a: Array) -> Any:
    return np.where(a < 0, np.ceil(a - 0.5), np.floor(a + 0.5))


UNARY: dict[str, Function] = {
    "stablehlo.abs": np.abs,
    "stablehlo.cosine": np.cos,
    "stablehlo.exponential": np.exp,
    "stablehlo.log": np.log,
    "stablehlo.logistic": lambda a: 1 / (1 + np.exp(-a)),
    "stablehlo.negate": np.negative,
    "stablehlo.not": np.invert,
    "stablehlo.round_nearest_afz": _away_from_zero,
    "stablehlo.round_nearest_even": np.rint,
    "stablehlo.rsqrt": lambda a: 1 / np.sqrt(a),
    "stablehlo.sign": np.sign,
    "stablehlo.sine": np.sin,
    "stablehlo.sqrt": np.sqrt,
    "stablehlo.tan": np.tan,
    "stablehlo.tanh": np.tanh,
}
"""Ops with one operand. Floating-point ops are computed in double precision and rounded."""
_EXACT = ("stablehlo.abs", "stablehlo.negate", "stablehlo.not", "stablehlo.sign")
BINARY: dict[str, Function] = {
    "stablehlo.add": lambda a, b: a | b if a.dtype == np.bool_ else a + b,
    "stablehlo.and": np.bitwise_and,
    "stablehlo.divide": _divide,
    "stablehlo.maximum": np.maximum,
    "stablehlo.minimum": np.minimum,
    "stablehlo.multiply": lambda a, b: a & b if a.dtype == np.bool_ else a * b,
    "stablehlo.or": np.bitwise_or,
    "stablehlo.remainder": _remainder,
    "stablehlo.subtract": lambda a, b: a ^ b if a.dtype == np.bool_ else a - b,
    "stablehlo.xor": np.bitwise_xor,
}
"""Ops with two operands."""
_COMPARE: dict[str, Function] = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
}  # fmt: skip


def compute(op: Op, arrays: list[Array]) -> Array | None:
    """The elements of the result of an op on constants; None if XLA does not fold it."""
    dtype = dtype_of(op.result.type.element)
    if dtype is None or not op.result.type.is_static:
        return None
    if any(array.ndim for array in arrays) and size_of(op.result.type) > LARGEST_FOLDED:
        return None
    with np.errstate(all="ignore"):
        found = _computed(op, arrays)
        return None if found is None else np.asarray(found).astype(dtype)


def _computed(op: Op, arrays: list[Array]) -> Any:
    name = op.name
    if name in UNARY:
        array = arrays[0]
        return UNARY[name](array.astype(np.float64) if array.dtype.kind == "f" and name not in _EXACT else array)
    if name in BINARY:
        return BINARY[name](*arrays)
    if name == "stablehlo.compare":
        return _COMPARE[comparison_direction(op)](*arrays)
    if name == "stablehlo.select":
        return np.where(*arrays)
    if name == "stablehlo.clamp":
        return np.minimum(np.maximum(arrays[1], arrays[0]), arrays[2])
    assert name == "stablehlo.convert"
    return arrays[0] != 0 if op.result.type.element == "i1" else arrays[0]
