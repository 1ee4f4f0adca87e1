"""Converts arrays to the types of a program's inputs."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from pyshardy.errors import ShardyError, UsageError
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.ir.functions import main_function
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Value


def check_inputs(arrays: Sequence[Any], tensors: Sequence[InterfaceTensor]) -> list[Any]:
    """The arrays, converted to the types of the inputs.

    Raises:
        UsageError: The number of arrays is wrong, or an array has another shape or kind.
    """
    if len(arrays) != len(tensors):
        raise UsageError("running a module", got=f"{len(arrays)} arrays", needed=f"{len(tensors)}, one per input")
    checked = []
    for array, tensor in zip(arrays, tensors):
        dtype = jax_dtype(tensor.element)
        array = array if isinstance(array, jax.Array) else np.asarray(array)
        if tuple(array.shape) != tensor.shape or not np.can_cast(array.dtype, dtype, "same_kind"):
            raise UsageError(
                f"reading the input {tensor.name}",
                got=f"{array.dtype}[{', '.join(map(str, array.shape))}]",
                needed=f"{dtype}[{', '.join(map(str, tensor.shape))}]",
            )
        checked.append(array if array.dtype == dtype else array.astype(dtype))
    return checked


_DTYPES = {"i1": "bool", "bf16": "bfloat16", "complex<f32>": "complex64", "complex<f64>": "complex128"}
_PREFIXES = {"ui": "uint", "i": "int", "f": "float"}


def jax_dtype(element: str) -> Any:
    """The JAX type of an MLIR element type.

    >>> jax_dtype("ui32"), jax_dtype("bf16")
    (dtype('uint32'), dtype(bfloat16))
    """
    if element in _DTYPES:
        return jax.numpy.dtype(_DTYPES[element])
    for prefix, name in _PREFIXES.items():
        rest = element.removeprefix(prefix)
        if rest != element and rest[0].isdigit():
            with contextlib.suppress(TypeError):
                return jax.numpy.dtype(name + (f"{rest[0]}_{rest[1:].lower()}" if "E" in rest else rest))
    raise ShardyError("running a module", got=f"element type {element}", needed="one that JAX has")


def is_wide(dtype: Any) -> bool:
    """Whether JAX has this type only if 64-bit types are enabled."""
    return bool(dtype.itemsize == 8 * (2 if dtype.kind == "c" else 1))


def mantissa_bits(dtype: Any) -> int:
    """The number of mantissa bits after the leading one, of a floating-point number or of both parts of a complex one.

    >>> mantissa_bits(np.float32), mantissa_bits(jax.numpy.bfloat16), mantissa_bits(np.complex128)
    (23, 7, 52)
    """
    finfo: Any = jax.numpy.finfo
    return int(finfo(dtype).nmant)


def largest_integer(dtype: Any) -> int:
    """The largest number of an integer type."""
    iinfo: Any = jax.numpy.iinfo
    return int(iinfo(dtype).max)


def is_token(value: Value) -> bool:
    """Whether a value is a token, which only orders side effects."""
    return str(value.type) == "!stablehlo.token"


def check_static(module: Module) -> None:
    """Refuse a module with an input that is not a tensor of static shape."""
    main = main_function(module.root)
    for arg in main.region.blocks[0].args:
        if not arg.type.is_static and not is_token(arg):
            raise ShardyError(
                "running a module",
                where=f"argument {arg.index} of the main function",
                got=f"type {arg.type}",
                needed="tensors of static shape",
            )
