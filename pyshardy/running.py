"""The public functions that run programs."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

from pyshardy.api import load, partition
from pyshardy.core.jax_values import JIT_OPTIONS
from pyshardy.core.text import named_type
from pyshardy.errors import UsageError
from pyshardy.ir.module import Module
from pyshardy.report.traffic import KindTotal
from pyshardy.results.engines import Engine
from pyshardy.results.partition import Partition
from pyshardy.results.program_result import ProgramResult
from pyshardy.results.propagation import Propagation


def run(
    program: Any,
    *arrays: Any,
    devices: Sequence[Any] | None = None,
    engine: Engine | str | None = None,
    force: bool = False,
    **keywords: Any,
) -> Any:
    """The outputs of a program, global arrays with the shardings of the program's outputs.

    For a JAX function, or a program of one, arguments and results are those of the function, as trees.

    Args:
        program: What `partition` or `propagate` returns, or what `load` returns or takes, which is partitioned then.
        arrays: The inputs, one global array per input, or the arguments of the function: NumPy's, or JAX's, placed or
            not. With several processes, every process gives the same arrays, or arrays that are placed. An input that
            the program donates is used up if it is placed already.
        devices: The devices, in the order that device ids count them; by default those that a JAX function was lowered
            for, or those that JAX has.
        engine: "local" runs the per-device program through XLA; "xla" lets XLA partition the propagated program itself,
            for comparison; "interpreter" runs the per-device program without devices, slowly, and gives NumPy arrays.
            By default "xla" for what `propagate` returns, else "local".
        force: Whether to run a program that seems to need more memory than this machine has for its virtual devices.
        keywords: The keyword arguments of the function; for one that is not loaded yet, also what `load` takes, such as
            `mesh` and `in_shardings`.

    Returns:
        What the function returns; a tuple of all outputs for any other program, and for inputs one by one.

    Raises:
        UsageError: Inputs that do not fit, too few devices, a device twice, an unknown engine, or too little memory.
        ShardyError: What runs it cannot compile it or fails on the way, such as when another process has died.

    >>> import numpy as np
    >>> program = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    >>> np.asarray(run(program, np.ones(2, np.float32))[0])
    array([1., 1.], dtype=float32)
    """
    if not isinstance(program, (ProgramResult, Module)) and callable(program):
        program = load(program, *arrays, **keywords)
        keywords = {name: value for name, value in keywords.items() if name not in _FOR_LOAD}
    result = program if isinstance(program, ProgramResult) else partition(program)
    return result.run(*arrays, devices=devices, engine=engine, force=force, **keywords)


_FOR_LOAD = JIT_OPTIONS | (set(signature(load).parameters) - {"source", "example_args", "keywords"})
"""Keywords that are not for the function itself."""


def compiled_collectives(
    program: Propagation | Partition, engine: Engine | str = Engine.LOCAL, devices: Sequence[Any] | None = None
) -> tuple[KindTotal, ...]:
    """The collectives of what XLA compiles, per kind: behind its own clean-up, which may join or drop some.

    Args:
        program: What `partition` or `propagate` returns.
        engine: "local" for the per-device program, "xla" for what XLA's own partitioner makes of the propagated one.
        devices: The devices, as for `run`.

    Raises:
        UsageError: Too few devices, an engine that does not compile, or what is neither propagated nor partitioned.
        ShardyError: XLA cannot compile the program.
    """
    from pyshardy.runtime.hlo import hlo_kinds

    if not isinstance(program, ProgramResult):
        needed = "what partition or propagate returns"
        raise UsageError("looking at a compiled program", got=named_type(program), needed=needed)
    return hlo_kinds(program.executable(devices, engine).as_text())
