"""The public functions that run programs."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from pyshardy.api.load import load
from pyshardy.api.partition import partition
from pyshardy.core.jax_values import JIT_OPTIONS
from pyshardy.core.text import named_type
from pyshardy.costing.traffic import KindTotal
from pyshardy.errors import UsageError
from pyshardy.frontend.from_hlo import is_hlo_text
from pyshardy.frontend.from_text import read_bytes
from pyshardy.ir.module import Module
from pyshardy.results.verbs import Result
from pyshardy.runtime.engine import Engine


def run(
    program: Any,
    *arrays: Any,
    devices: Sequence[Any] | None = None,
    engine: Engine | str | None = None,
    force: bool = False,
    **keywords: Any,
) -> Any:
    """Run a program and return its outputs as global arrays, sharded as the outputs of the program.

    For a JAX function, or a program loaded from one, arguments and results are those of the function, as trees.

    Args:
        program: The result of `partition` or `propagate`; or the result of `load`, or anything that `load` takes, which
            `run` partitions first.
        arrays: One global array per input, or the arguments of the function: arrays of NumPy or JAX, placed or not.
            With several processes, give the same arrays in every process, or placed arrays. If the program donates an
            input, a placed array for it cannot be used again.
        devices: The devices, in the order of device ids; by default those that a JAX function was lowered for, or
            JAX's own.
        engine: "local" runs the per-device program through XLA; "xla" lets XLA partition the propagated program itself,
            for comparison; "interpreter" runs the per-device program without devices, slowly, and gives NumPy arrays.
            The default is "xla" for the result of `propagate`, else "local".
        force: Whether to run a program that seems to need more memory for virtual devices than this machine has.
        keywords: The keyword arguments of the function; for a function that is not loaded yet, also those of `load`,
            such as `mesh` and `in_shardings`.

    Returns:
        The result of the function. A tuple of all outputs for any other program, and if `arrays` are flat inputs.

    Raises:
        UsageError: Inputs do not fit, there are too few devices, a device occurs twice, the engine is unknown, or the
            program needs too much memory.
        ShardyError: The engine cannot compile the program, or fails while it runs, for example if a process dies.

    >>> import numpy as np
    >>> program = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    >>> np.asarray(run(program, np.ones(2, np.float32))[0])
    array([1., 1.], dtype=float32)
    """
    if not isinstance(program, (Result, Module)) and callable(program):
        program = load(program, *arrays, **keywords)
        keywords = {name: value for name, value in keywords.items() if name not in _FOR_LOAD}
    result = program if isinstance(program, Result) else partition(program)
    return result.run(*arrays, devices=devices, engine=engine, force=force, **keywords)


_FOR_LOAD = JIT_OPTIONS | (set(signature(load).parameters) - {"source", "example_args", "keywords"})
"""Keywords that are not for the function itself."""


def compiled_collectives(
    program: Any, engine: Engine | str = Engine.LOCAL, devices: Sequence[Any] | None = None
) -> tuple[KindTotal, ...]:
    """Count the collectives of each kind in XLA's compiled program. XLA may have joined or dropped some.

    Args:
        program: The result of `partition` or `propagate`; or a compiled program: what `lowered.compile()` gives, or the
            path of its HLO as text. For these, the other arguments do not matter.
        engine: "local" for the per-device program, "xla" for the propagated program, partitioned by XLA.
        devices: The devices, as for `run`.

    Raises:
        UsageError: There are too few devices, the engine does not compile, the program is none of these, or the file
            cannot be read.
        ShardyError: XLA cannot compile the program.
    """
    from pyshardy.runtime.hlo import hlo_kinds

    doing = "looking at a compiled program"
    if isinstance(program, (str, Path)):
        text = read_bytes(str(program)).decode(errors="replace")
        if not is_hlo_text(text):
            raise UsageError(doing, where=str(program), got="no HLO", needed="HLO as text, which begins with HloModule")
        return hlo_kinds(text)
    if hasattr(program, "as_text") and hasattr(program, "memory_analysis"):
        return hlo_kinds(program.as_text())
    if not isinstance(program, Result):
        needed = "the result of partition or propagate, what lowered.compile() gives, or the path of HLO"
        raise UsageError(doing, got=named_type(program), needed=needed)
    return hlo_kinds(program.executable(devices, engine).as_text())
