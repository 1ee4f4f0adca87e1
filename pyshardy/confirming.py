"""The public function that compiles a program to the end, ahead of time."""

from __future__ import annotations

import re
from typing import Any

from pyshardy.api import partition, propagate
from pyshardy.compilers.answer import Answer
from pyshardy.compilers.ask import TIMEOUT_S, ask
from pyshardy.compilers.target import compiler_name
from pyshardy.errors import ShardyError, UsageError
from pyshardy.estimating import cost
from pyshardy.report.confirmation import Confirmation
from pyshardy.runtime.hlo import hlo_kinds

_OUT_OF_MEMORY = re.compile(r"RESOURCE_EXHAUSTED|[Oo]ut of memory|Ran out of memory")
_USED = re.compile(r"Used ([\d.]+)([KMGT]?)i?B? of |required for [\w ]*\(([\d.]+)([KMGT]?)\) exceeds")
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def confirm(program: Any, compiler: str = "", *, timeout_s: float = TIMEOUT_S, estimate: bool = True) -> Confirmation:
    """Compile a program to the end for devices that need not be present, and compare with the estimate of `cost`.

    The compiler runs in a process of its own. Its answer is kept; a second call answers at once.

    Args:
        program: A result of `load` or `propagate`, or anything that `load` takes.
        compiler: The compiler, such as "tpu:v5e:2x4", "cuda:h100" or "cpu"; by default the one that the program was
            propagated with, or that of the platform that it was lowered for.
        timeout_s: The limit in seconds.
        estimate: Whether to estimate the compiler's program too, with `cost`; for CPUs there is no estimate.

    Raises:
        UsageError: No compiler is named, it is not installed, or it does not fit the program's mesh.
        ShardyError: The compiler refuses the program, crashes, or takes too long.

    >>> text = '''
    ... sdy.mesh @mesh = <["x"=2]>
    ... func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4xf32> {
    ...   %0 = stablehlo.constant dense<0.0> : tensor<f32>
    ...   %1 = stablehlo.reduce(%a init: %0) applies stablehlo.add across dimensions = [0]
    ...     : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
    ...   return %1 : tensor<4xf32>
    ... }'''
    >>> found = confirm(text, "cpu")
    >>> [(row.kind, row.count) for row in found.collectives], dict(found.memory)["argument"]
    ([('all_reduce', 1)], 64)
    """
    result = propagate(program, compiler=compiler_name(compiler) or None)
    name = result.propagate_options.compiler
    if not name:
        needed = "the name of a compiler, such as tpu:v5e:2x4"
        raise UsageError("compiling a program", got="no compiler", needed=needed)
    try:
        answer = ask(result.before, name, to_the_end=True, timeout_s=timeout_s)
        refused = None
    except ShardyError as error:
        if _OUT_OF_MEMORY.search(str(error)) is None:
            raise
        answer, refused = None, str(error)
    part = partition(result)
    assert part.answer is not None
    chip = part.answer.target.chip
    said = cost(part, chip) if estimate and chip else None
    return Confirmation(
        compiler=str(part.answer),
        hardware="" if said is None else said.estimate.hardware,
        seconds=0.0 if answer is None else answer.seconds or 0.0,
        memory=() if answer is None else tuple((answer.memory or {}).items()),
        memory_limit_bytes=None if said is None else said.estimate.memory_limit_bytes,
        out_of_memory=refused,
        needed_bytes=None if refused is None else _needed(refused),
        collectives=() if answer is None else hlo_kinds(_compiled(answer)),
        partitioned=part.traffic.kinds,
        estimated_peak_bytes=None if said is None else said.peak_bytes,
        replications=part.replications,
    )


def _compiled(answer: Answer) -> str:
    assert answer.compiled is not None
    return answer.compiled


def _needed(message: str) -> int | None:
    """The bytes that a program needs, as a compiler says when it does not fit.

    >>> _needed("Ran out of memory in memory space hbm. Used 30.50G of 15.75G hbm.")
    32749125632
    >>> _needed("the total memory required for HLO temporaries (16.50G) exceeds available HBM (15.75G)")
    17716740096
    """
    match = _USED.search(message)
    if match is None:
        return None
    number, unit = (part for part in match.groups() if part is not None)
    return int(float(number) * (1 << _UNITS[unit]))
