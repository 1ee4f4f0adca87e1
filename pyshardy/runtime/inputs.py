"""Inputs for running a module: random ones, or those in a file."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from pyshardy.core.text import format_shape
from pyshardy.errors import UsageError
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.runtime.arrays import jax_dtype, largest_integer
from pyshardy.runtime.input_uses import InputUse

_SMALL = 8
_UNKNOWN = InputUse()


def random_inputs(
    tensors: Sequence[InterfaceTensor], seed: int = 0, uses: Mapping[int, InputUse] = MappingProxyType({})
) -> list[np.ndarray]:
    """Random arrays for the inputs: normal numbers, integers from 0 to 7, booleans, adapted to their uses.

    Weights are scaled by one over the root of their fan-in, so that products keep magnitudes and deep programs do not
    overflow. Indices are within bounds. Operands of roots and logarithms are not negative. Exponents are integers from
    1 to 7.

    Args:
        tensors: The inputs.
        seed: The seed of all random numbers.
        uses: How the program uses its inputs, by their numbers, if that is known.

    Raises:
        UsageError: An input has a dynamic shape, or does not fit into memory.
    """
    random = np.random.default_rng(seed)
    try:
        return [_random_array(tensor, random, uses.get(tensor.index, _UNKNOWN)) for tensor in tensors]
    except (ValueError, MemoryError, OverflowError) as error:
        shapes = ", ".join(format_shape(tensor.shape, tensor.element) for tensor in tensors)
        raise UsageError("drawing random inputs", got=shapes, needed="arrays that memory can hold") from error


def _random_array(tensor: InterfaceTensor, random: np.random.Generator, use: InputUse) -> np.ndarray:
    dtype = jax_dtype(tensor.element)
    if min(tensor.shape, default=0) < 0:
        raise UsageError("drawing random inputs", got=f"the dynamic shape of {tensor.name}", needed="static shapes")
    if dtype == np.bool_:
        return random.integers(0, 2, tensor.shape).astype(dtype)
    if np.issubdtype(dtype, np.integer) or tensor.element.startswith(("i", "ui")):
        largest = _SMALL - 1 if use.size is None else min(use.size - 1, largest_integer(dtype))
        return random.integers(int(use.is_count), max(largest, int(use.is_count)) + 1, tensor.shape).astype(dtype)
    if use.is_count:
        return random.integers(1, _SMALL, tensor.shape).astype(dtype)
    array = random.normal(0, 1 / sqrt(use.fan_in), tensor.shape)
    if np.issubdtype(dtype, np.complexfloating):
        array = array + 1j * random.normal(0, 1 / sqrt(use.fan_in), tensor.shape)
    return np.asarray(np.abs(array) if use.is_not_negative else array).astype(dtype)


def inputs_from_file(path: str | Path, tensors: Sequence[InterfaceTensor]) -> list[Any]:
    """The arrays of an `.npz` file, by the names of the inputs or in their order.

    Raises:
        UsageError: The file cannot be read, or has no array for an input.
    """
    try:
        arrays = _read_archive(path)
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        reason = error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"reading inputs from {path}", got=reason, needed="an .npz file of arrays") from error
    names = [tensor.name for tensor in tensors]
    if set(names) <= set(arrays):
        return [arrays[name] for name in names]
    if len(arrays) == len(tensors):
        return list(arrays.values())
    raise UsageError(
        f"reading inputs from {path}",
        got=f"the arrays {', '.join(arrays) or 'none'}",
        needed=f"one for each of {', '.join(names)}",
    )


def _read_archive(path: str | Path) -> dict[str, np.ndarray]:
    with open(path, "rb") as stream:
        if not zipfile.is_zipfile(stream):
            raise ValueError("a file that is no archive")
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
