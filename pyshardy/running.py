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
    """Run a program; return its outputs, global arrays with the shardings of the program's outputs.

    For a JAX function, or a program of one, arguments and results are those of the function, as trees.

    Args:
        program: The result of `partition` or `propagate`; or the result of `load`, or anything that `load` takes, which
            is partitioned first.
        arrays: One global array per input, or the arguments of the function: NumPy's arrays, or JAX's, placed or not.
            With several processes, every process gives the same arrays, or arrays that are placed. An input that the
            program donates cannot be used again if it is placed already.
        devices: The devices, in the order of device ids; by default those that a JAX function was lowered for, or those
            that JAX has.
        engine: "local" runs the per-device program through XLA; "xla" lets XLA partition the propagated program itself,
            for comparison; "interpreter" runs the per-device program without devices, slowly, and gives NumPy arrays.
            The default is "xla" for the result of `propagate`, else "local".
        force: Whether to run a program that seems to need more memory for virtual devices than this machine has.
        keywords: The keyword arguments of the function; for one that is not loaded yet, also those of `load`, such as
            `mesh` and `in_shardings`.

    Returns:
        The result of the function; for any other program, and for inputs one by one, a tuple of all outputs.

    Raises:
        UsageError: Inputs that do not fit, too few devices, a device twice, an unknown engine, or too little memory.
        ShardyError: The engine cannot compile the program, or fails while it runs, such as when another process dies.

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
    """Count the collectives of XLA's compiled program, per kind, after its clean-up, which may join or drop some.

    Args:
        program: The result of `partition` or `propagate`.
        engine: "local" for the per-device program, "xla" for what XLA's own partitioner makes of the propagated one.
        devices: The devices, as for `run`.

    Raises:
        UsageError: Too few devices, an engine that does not compile, or a program neither propagated nor partitioned.
        ShardyError: XLA cannot compile the program.
    """
    from pyshardy.runtime.hlo import hlo_kinds

    if not isinstance(program, ProgramResult):
        needed = "the result of partition or propagate"
        raise UsageError("looking at a compiled program", got=named_type(program), needed=needed)
    return hlo_kinds(program.executable(devices, engine).as_text())
