"""The effect of rounding on a program's outputs, by perturbing its rounding (Monte Carlo arithmetic).

Two correct versions of a program differ: they sum in another order, fuse other ops, and round at other places. How far
that moves the outputs depends on the program: not at all in a copy, arbitrarily far in a chaotic one. To measure it,
the program runs again with every input and every rounded result moved by one step of its type, up or down. Moving only
inputs would not be enough. A step of an f32 input hardly affects an op that rounds to bf16. And some programs generate
all their data from an integer.

A number that needs at most half of its bits is not moved. It was not rounded: it is a count, a mask or a power of two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod, sqrt
from typing import Any

import jax
import numpy as np

from pyshardy.frontend.interface import input_tensors, output_tensors
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Region, Value, walk
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.rules.ops import ops_that
from pyshardy.rules.properties import CONTROL_FLOW
from pyshardy.runtime.arrays import check_inputs, mantissa_bits
from pyshardy.runtime.callbacks import calls_python
from pyshardy.runtime.contractions import CONTRACTIONS, products_summed
from pyshardy.runtime.exported import CompiledModule
from pyshardy.runtime.noise import Noise
from pyshardy.runtime.runnable import sequential
from pyshardy.transforms.builder import Builder

_MANTISSAS = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7}
"""The number of mantissa bits of a type."""
_BITS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16}
_WIDE = _MANTISSAS["f32"]
"""Types of this many bits are summed in their own type, others in a wider one."""
_SUMS_PER_STEP = 16
"""A sequential sum of n numbers has an error of up to sqrt(n)/6 steps; blocks and trees reduce it."""
_ROUNDING = ops_that(lambda traits: traits.rounds)
_APPLYING = ops_that(lambda traits: traits.applies)
"""Ops that round if the op that they apply does: a sum does, a maximum does not."""
_HOLDING = CONTROL_FLOW | {"builtin.module", "func.func"}
"""Ops whose regions compute whole tensors."""


_TRIALS = 4
"""The number of runs. With it, the noise of a single number is ten times too small once in four thousand programs."""


def noises(module: Module, arrays: Sequence[Any], expected: Sequence[Any]) -> list[Noise] | None:
    """The effect of rounding on every output; None if the program calls Python, which would see every run.

    Args:
        module: The program.
        arrays: Its inputs.
        expected: Its outputs on one device.
    """
    if calls_python(module.root):
        return None
    trials = list(run_rounding_otherwise(module, arrays))
    return [Noise(np.asarray(output), found) for output, found in zip(expected, zip(*trials, strict=True))]


def run_rounding_otherwise(module: Module, arrays: Sequence[Any]) -> Iterator[list[np.ndarray]]:
    """The outputs on one device of a few runs with perturbed rounding; equal calls give equal outputs.

    Raises:
        UsageError: Inputs that do not fit.
        ShardyError: The program is written for several devices, or XLA cannot compile it.
    """
    ins, outs = input_tensors(module.root), output_tensors(module.root)
    executable = CompiledModule(rounding_otherwise(sequential(module)), ins, outs)
    checked = [np.asarray(array) for array in check_inputs(arrays, ins)]
    for trial in range(_TRIALS):
        random = np.random.default_rng(trial)
        yield [np.asarray(output) for output in executable([nudged(array, random) for array in checked])]


def nudged(array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """An array with every floating-point number moved by a step of its type, up or down, as `random` says."""
    kind = np.dtype(array.dtype)
    if kind.kind == "c":
        part = np.dtype(f"f{kind.itemsize // 2}")
        return nudged(np.ascontiguousarray(array).reshape(-1).view(part), random).view(kind).reshape(array.shape)
    if not jax.numpy.issubdtype(kind, np.floating):
        return array
    mantissa = mantissa_bits(kind)
    signs = random.integers(0, 2, array.shape) * 2 - 1
    bits = np.ascontiguousarray(array).view(f"u{kind.itemsize}").reshape(array.shape)
    is_rounded = bits & np.asarray(_low_bits(mantissa), bits.dtype) != 0
    with np.errstate(all="ignore"):
        factors = np.where(is_rounded, 1 + signs * 2.0**-mantissa, 1.0).astype(kind)
        return np.asarray(array * factors, kind)


def _low_bits(mantissa: int) -> int:
    return int(2 ** (mantissa // 2) - 1)


def rounding_otherwise(module: Module) -> Module:
    """The program with every rounded result moved by a step of its type, or by more if it is a sum.

    The last bit of the result decides the direction; it is as good as random.

    Args:
        module: A program for one device, without ops of the `sdy` dialect.
    """
    root = module.copy_root()
    with module.context:
        reader = OpSpecReader()
        for op in [op for op in _tensor_ops(root) if _rounds(op)]:
            steps = max(1.0, sqrt(_summed(op, reader) / _SUMS_PER_STEP))
            for result in op.results:
                _move(result, steps, module)
    return module.with_root(root)


def _tensor_ops(op: Op) -> Iterator[Op]:
    """The ops inside an op that compute whole tensors, without the bodies of reductions."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block:
                yield inner
                if inner.name in _HOLDING:
                    yield from _tensor_ops(inner)


def _rounds(op: Op) -> bool:
    if op.name in _APPLYING:
        return any(inner.name in _ROUNDING for region in op.regions for inner in _ops_in(region))
    if op.name == "stablehlo.convert":
        sizes = [_MANTISSAS.get(value.type.element, 0) for value in (op.operands[0], op.results[0])]
        return sizes[0] > sizes[1]
    return op.name in _ROUNDING or op.name.startswith("chlo.")


def _ops_in(region: Region) -> Iterator[Op]:
    return (inner for block in region.blocks for op in block for inner in walk(op))


def _summed(op: Op, reader: OpSpecReader) -> float:
    """The number of terms that an op sums per element of its result."""
    if op.name in ("stablehlo.reduce", "stablehlo.reduce_window"):
        return prod(op.operands[0].type.shape or ()) / max(1, prod(op.results[0].type.shape or ()))
    return products_summed(op, reader) if op.name in CONTRACTIONS else 1


def _move(value: Value, steps: float, module: Module) -> None:
    """Replace a value by its perturbed version for all users."""
    type, op = value.type, value.defining_op
    assert op is not None and op.next is not None
    element = type.element.removeprefix("complex<").removesuffix(">")
    if not type.is_ranked_tensor or not type.is_static or element not in _MANTISSAS:
        return
    users, builder = set(value.uses), Builder(module.attrs, op.next, op.location)
    if element == type.element:
        other = _moved(value, steps, builder)
    else:
        part = builder.type(type.shape or (), element)
        halves = [_moved(builder.value(name, [value], part), steps, builder) for name in ("real", "imag")]
        other = builder.value("complex", halves, type)
    value.replace_uses(other, lambda user, index: (user, index) in users)


def _moved(value: Value, steps: float, builder: Builder) -> Value:
    """A value times 1 plus or minus a step; unchanged if it needs only half of its bits."""
    type = value.type
    mantissa = _MANTISSAS[type.element]
    size = 2.0**-mantissa * (steps if mantissa >= _WIDE else 1)
    bits = builder.value("bitcast_convert", [value], builder.type(type.shape or (), f"ui{_BITS[type.element]}"))
    zero = builder.splat("0", bits.type)

    def has(mask: int) -> Value:
        return builder.compare("NE", builder.combine("and", bits, builder.splat(str(mask), bits.type)), zero)

    up, down, same = (builder.splat(repr(factor), type) for factor in (1 + size, 1 - size, 1.0))
    factor = builder.select(has(_low_bits(mantissa)), builder.select(has(1), up, down), same)
    return builder.combine("multiply", value, factor)
