"""Running a program on eight devices and on one, and comparing the numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import jax
import ml_dtypes
import numpy as np

import pyshardy
from pyshardy.core.boxes import local_shape
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.errors import ShardyError
from pyshardy.frontend.interface import Interface, InterfaceTensor
from pyshardy.ir.module import Module
from pyshardy.runtime.arrays import jax_dtype
from pyshardy.runtime.execute import run_on_one_device
from pyshardy.runtime.interpreter import InterpreterExecutable
from pyshardy.runtime.runnable import sequential

TOLERANCE = 2e-5
"""The largest |a-b| for numbers around 1, for sums in another order, of 32 bits."""
_DRAWS, _NOISE = 16, 8
"""How often the inputs are moved by rounding errors, and what multiple of the effect is no difference."""
_STEPS = 4
"""The same for narrower types, in the distance of two numbers around 1."""


class Verdict(Enum):
    """How a program fared."""

    EQUAL = "equal"
    DIFFERENT = "different"
    REFUSED = "refused"
    NOT_RUN = "not run on one device"
    NOTHING = "has no outputs"
    MISCOMPILED = "as StableHLO's interpreter has it, unlike XLA on one device"


@dataclass(frozen=True)
class Outcome:
    """How a program fared, and why."""

    verdict: Verdict
    details: str = ""
    is_shared: bool = False
    """Whether a device has less than everything, or sends something."""


_SOLVERS = ("triangular_solve", "cholesky", "stablehlo.fft")
"""What becomes of infinities in these is up to the order in which XLA works through blocks."""


_PADDING = re.compile(r"convolution.*?\bpad(?:ding)? = (?:dense<)?([^a-z]*)")
_HOLES = re.compile(r"convolution.*?\blhs_dilat(?:e|ion) = (?:array<i64: )?([^a-z]*)")


_SELECTION = "select_and_scatter"
"""Which of several equal numbers it selects is up to XLA. Rounding tells equal numbers apart, except zeros."""


def _has_padding(text: str) -> bool:
    """Whether a convolution has zeros around its input or in it.

    XLA for CPUs multiplies the kernel by them or leaves them out, as it computes the convolution: an infinity in the
    kernel makes NaN or not. Devices that exchange halos multiply, as StableHLO says.
    """
    is_around = any(re.search("[1-9]", found[1]) for found in _PADDING.finditer(text))
    return is_around or any(re.search("[2-9]|1[0-9]", found[1]) for found in _HOLES.finditer(text))


def specials_of(text: str) -> tuple[float, ...]:
    """The unusual numbers that may be among the inputs of a program.

    A window of `select_and_scatter` at a border may select what is outside, if it has only the number that is never
    selected, or ends with NaN (docs/partitioning.md).
    """
    if _has_padding(text) or any(name in text for name in (*_SOLVERS, _SELECTION)):
        return ()
    return np.nan, np.inf, -np.inf, 0.0, -0.0


def inputs_for(
    ports: Sequence[InterfaceTensor],
    seed: int,
    specials: Sequence[float] = (),
    nonzero: bool = False,
    is_wide: bool = False,
) -> list[np.ndarray]:
    """Inputs with exact sums: whole numbers, often with unusual numbers among them.

    Args:
        ports: The inputs.
        seed: Of the random numbers.
        specials: Floating-point numbers that may be among them.
        nonzero: Whether floating-point zeros are left out.
        is_wide: Whether integers may be negative, beyond the sizes of dimensions, or anything their type holds.
    """
    random = np.random.default_rng(seed)
    if random.random() >= 0.3:
        specials = ()
    return [_input(port, random, specials, nonzero, is_wide) for port in ports]


def _integers(dtype: Any, shape: tuple[int, ...], random: np.random.Generator, is_wide: bool) -> np.ndarray:
    limits = np.iinfo(dtype)
    ranges = [(0, 5), (max(-4, limits.min), 20), (limits.min, limits.max)]
    low, high = ranges[random.integers(3)] if is_wide else (0, 5)
    return random.integers(low, high, shape, dtype, endpoint=is_wide)


def _input(
    port: InterfaceTensor, random: np.random.Generator, specials: Sequence[float], nonzero: bool, is_wide: bool
) -> np.ndarray:
    dtype = jax_dtype(port.element)
    if dtype == np.bool_:
        return random.integers(0, 2, port.shape).astype(bool)
    if dtype.kind in "iu":
        return _integers(dtype, port.shape, random, is_wide)
    array = random.integers(-3, 4, port.shape).astype(np.float64)
    if nonzero:
        array = np.where(array == 0, 1.0, array)
    if specials:
        array = np.where(random.random(port.shape) < 0.1, random.choice(np.array(specials), port.shape), array)
    if dtype.kind == "c":
        array = array + 1j * random.integers(-3, 4, port.shape)
    return np.asarray(array).astype(dtype)


def compare_numbers(
    text: str,
    seed: int,
    *,
    engine: str = "local",
    is_exact: bool = False,
    is_wide: bool = False,
    options: Any = None,
    view: str = "stablehlo",
    is_finite: bool = False,
) -> Outcome:
    """How the outputs of a module on the devices of its mesh compare with those of one device.

    The module stands as it is: XLA's view drops the shardings of ops and folds what such small programs compute.
    """
    module = pyshardy.load(text)
    try:
        partition = pyshardy.partition(module, options or pyshardy.PartitionOptions(), view=view)
    except ShardyError as error:
        return Outcome(Verdict.REFUSED, str(error))
    specials = () if is_finite else specials_of(text)
    nonzero = any(name in text for name in ("triangular_solve", _SELECTION))
    inputs = inputs_for(partition.inputs, seed, specials, nonzero, is_wide)
    try:
        expected = run_on_one_device(module, inputs)
    except ShardyError as error:
        return Outcome(Verdict.NOT_RUN, str(error))
    found = partition.run_flat(inputs, engine=engine)
    problem = _problem(partition, found, expected, is_exact)
    if problem and not is_exact:
        problem = _problem(partition, found, expected, is_exact, _noise(module, inputs, expected))
    if problem:
        interpreted = _interpreted(module, inputs)
        is_right = interpreted is not None and not _problem(partition, found, interpreted, is_exact)
        return Outcome(Verdict.MISCOMPILED if is_right else Verdict.DIFFERENT, problem)
    return Outcome(Verdict.EQUAL if partition.outputs else Verdict.NOTHING, is_shared=_is_shared(partition))


def _problem(
    partition: pyshardy.Partition,
    found: Sequence[Any],
    expected: Sequence[Any],
    is_exact: bool,
    noise: Sequence[np.ndarray | None] = (),
) -> str:
    """What is wrong with the first wrong output; empty if nothing is."""
    allowed = noise or [None] * len(expected)
    for port, one, other, more in zip(partition.outputs, found, expected, allowed, strict=True):
        problem = difference_on_devices(one, np.asarray(other), is_exact, more)
        if problem:
            return f"{port.name}: {problem}"
    return ""


def _noise(module: Module, inputs: Sequence[np.ndarray], expected: Sequence[Any]) -> list[np.ndarray | None]:
    """How far rounding may move each floating-point number of the outputs.

    It is a multiple of how far the outputs move on one device if every input moves by a rounding error: far for the sine
    of a large number, for example. None for outputs of other types.
    """
    random = np.random.default_rng(0)
    draws = [run_on_one_device(module, [_moved(array, random) for array in inputs]) for _ in range(_DRAWS)]
    return [
        _distance([np.asarray(draw[place]) for draw in draws], np.asarray(one)) for place, one in enumerate(expected)
    ]


def _moved(array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    if array.dtype.kind not in "fc":
        return array
    step = np.finfo(array.dtype).eps * random.choice((-1, 1), array.shape)
    return (array * (1 + step)).astype(array.dtype)


def _distance(draws: Sequence[np.ndarray], expected: np.ndarray) -> np.ndarray | None:
    if expected.dtype.kind not in "fc":
        return None
    with np.errstate(invalid="ignore"):
        largest: np.ndarray = np.max([np.abs(draw - expected) for draw in draws], axis=0)
    return _NOISE * np.where(np.isfinite(largest), largest, 0).astype(np.float64)


def _interpreted(module: Module, inputs: Sequence[np.ndarray]) -> Sequence[Any] | None:
    """The outputs on one device by StableHLO's interpreter; None if it cannot run the program."""
    single = sequential(module)
    try:
        return InterpreterExecutable(single, Interface.of(single.root))(inputs)
    except ShardyError:
        return None


def _is_shared(partition: pyshardy.Partition) -> bool:
    """Whether a device has less than everything, or sends something."""
    ports = [*partition.inputs, *partition.outputs]
    meshes = partition.meshes
    cut = [
        local_shape(port.sharding, mesh_of(port.sharding, meshes), port.shape) != port.shape
        for port in ports
        if port.sharding is not None
    ]
    return any(cut) or bool(partition.traffic.collectives)


def difference_on_devices(
    found: Any, expected: np.ndarray, is_exact: bool = False, noise: np.ndarray | None = None
) -> str:
    """What is wrong with an array, also where several devices hold the same part of it; nothing if all are right."""
    problem = difference(np.asarray(found), expected, is_exact, noise)
    if problem or not isinstance(found, jax.Array):
        return problem
    for shard in found.addressable_shards:
        more = None if noise is None else noise[shard.index]
        problem = difference(np.asarray(shard.data), expected[shard.index], is_exact, more)
        if problem:
            return f"{problem} of {shard.index} on device {shard.device.id}"
    return ""


def difference(found: np.ndarray, expected: np.ndarray, is_exact: bool = False, noise: np.ndarray | None = None) -> str:
    """What is wrong with an array; nothing if it is equal up to the order of sums, or exactly if asked for.

    Args:
        found: The array.
        expected: What it should be.
        is_exact: Whether all numbers have to be equal.
        noise: How far floating-point numbers may be off besides.
    """
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"{found.dtype}{found.shape} instead of {expected.dtype}{expected.shape}"
    if expected.dtype.kind in "biu" or (is_exact and expected.dtype.kind != "V"):
        same = (found == expected) | ((found != found) & (expected != expected))
        if expected.dtype.kind == "f":  # XLA makes zeros of subnormal numbers in some loops, and not in others
            tiny = np.finfo(expected.dtype).tiny
            same |= (np.abs(found) < tiny) & (np.abs(expected) < tiny)
        return "" if np.all(same) else _first(found, expected, ~same)
    kind = complex if expected.dtype.kind == "c" else np.float64
    one, other = found.astype(kind), expected.astype(kind)
    finite = np.isfinite(other)
    tolerance = max(TOLERANCE, _STEPS * float(ml_dtypes.finfo(expected.dtype).eps))
    with np.errstate(invalid="ignore"):
        scale = np.max(np.abs(other), where=finite, initial=1.0)
        allowed = tolerance * (1 + np.abs(other)) + tolerance * scale / 10 + (0 if noise is None else noise)
        is_close = np.abs(one - other) <= allowed
        wrong = np.where(finite, ~is_close, ~(_same_special(one, other)))
    return _first(found, expected, wrong) if np.any(wrong) else ""


def _same_special(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Whether both are the same infinity, or both not a number."""
    if one.dtype.kind == "c":
        return _same_special(one.real, other.real) & _same_special(one.imag, other.imag) | (
            ~np.isfinite(one) & ~np.isfinite(other)
        )
    same: np.ndarray = (one == other) | (np.isnan(one) & np.isnan(other))
    return same


def _first(found: np.ndarray, expected: np.ndarray, wrong: np.ndarray) -> str:
    place = tuple(int(index) for index in np.argwhere(wrong)[0]) if wrong.ndim else ()
    return f"{found[place]} instead of {expected[place]} at {list(place)}, {int(np.sum(wrong))} of {wrong.size} wrong"
