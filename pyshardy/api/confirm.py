"""The public function that compiles a program to the end, ahead of time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyshardy.api.cost import cost
from pyshardy.api.partition import partition
from pyshardy.api.propagate import propagate
from pyshardy.compilers.answer import CompilerAnswer
from pyshardy.compilers.ask import TIMEOUT_S, ask, ask_all
from pyshardy.compilers.target import compiler_name
from pyshardy.core.mesh import Mesh, largest_mesh
from pyshardy.core.text import quote
from pyshardy.costing.traffic import OTHER_GROUPS, AxesTotal, KindTotal, Traffic
from pyshardy.errors import ShardyError, UsageError
from pyshardy.ir.module import Module
from pyshardy.report.confirmation import Confirmation, check_collectives, memory_peak
from pyshardy.report.extrapolation import ShortenedProgram, memory_without_one, whole_kinds, whole_memory, whole_rows
from pyshardy.results.cost import Cost
from pyshardy.runtime.hlo import hlo_collectives, hlo_kinds
from pyshardy.searching.program.fewer_layers import FewerLayers

_OUT_OF_MEMORY = re.compile(r"RESOURCE_EXHAUSTED|[Oo]ut of memory|Ran out of memory")
_USED = re.compile(r"Used ([\d.]+)([KMGT]?)i?B? of |required for [\w ]*\(([\d.]+)([KMGT]?)\) exceeds")
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def confirm(
    program: Any,
    compiler: str = "",
    *,
    timeout_s: float = TIMEOUT_S,
    estimate: bool = True,
    shortened: bool = False,
) -> Confirmation:
    """Compile a program to the end for devices that need not be present, and compare with the estimate of `cost`.

    The compiler runs in a process of its own. Its answer is kept; a second call answers at once.

    Args:
        program: A result of `load` or `propagate`, or anything that `load` takes.
        compiler: The compiler, such as "tpu:v5e:2x4", "cuda:h100" or "cpu"; by default the one that the program was
            propagated with, or that of the platform that it was lowered for.
        timeout_s: The limit in seconds.
        estimate: Whether to estimate the compiler's program too, with `cost`; for CPUs there is no estimate.
        shortened: Whether to compile versions with 2, 5 and 7 of the repeated layers instead, at the same time, and to
            say what follows for all.

    Raises:
        UsageError: No compiler is named, it is not installed, or it does not fit the program's mesh; or no layers
            repeat, and `shortened` is given.
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
    part = partition(result)
    mesh = largest_mesh(part.meshes) or Mesh(())
    compiled, refused = _compiled(result.before, name, mesh, timeout_s, shortened)
    assert part.answer is not None
    chip = part.answer.target.chip
    said = cost(part, chip) if estimate and chip else None
    estimated = _partitioned(part.traffic, mesh) if said is None else _estimated(said, mesh)
    return Confirmation(
        compiler=str(part.answer),
        hardware="" if said is None else said.estimate.hardware,
        seconds=0.0 if compiled is None else compiled.seconds,
        memory=() if compiled is None else tuple(compiled.memory.items()),
        memory_limit_bytes=None if said is None else said.estimate.memory_limit_bytes,
        out_of_memory=refused,
        needed_bytes=None if refused is None else _needed(refused),
        collectives=() if compiled is None else compiled.kinds,
        partitioned=part.traffic.kinds,
        estimated_peak_bytes=None if said is None else said.peak_bytes,
        replications=part.replications,
        estimated_memory=() if said is None else _memory(said),
        rows=() if compiled is None else check_collectives(compiled.rows, estimated),
        layers=0 if compiled is None else compiled.layers,
        versions=() if compiled is None else compiled.versions,
        peak_range=None if compiled is None else compiled.peak_range,
    )


@dataclass(frozen=True, slots=True)
class _Compiled:
    """What a compiler made of the whole program, or what follows from versions with fewer layers."""

    memory: Mapping[str, int]
    kinds: tuple[KindTotal, ...]
    rows: tuple[AxesTotal, ...]
    seconds: float
    layers: int = 0
    versions: tuple[int, ...] = ()
    peak_range: tuple[int, int] | None = None


def _compiled(
    module: Module, compiler: str, mesh: Mesh, timeout_s: float, shortened: bool
) -> tuple[_Compiled | None, str | None]:
    """What the compiler makes of a program, or why it does not fit into memory."""

    def version(answer: CompilerAnswer, layers: tuple[int, ...] = ()) -> ShortenedProgram:
        assert answer.compiled is not None
        text = answer.compiled
        return ShortenedProgram(layers, answer.memory or {}, hlo_kinds(text), hlo_collectives(text, mesh))

    try:
        if not shortened:
            answer = ask(module, compiler, to_the_end=True, timeout_s=timeout_s)
            found = version(answer)
            return _Compiled(found.memory, found.kinds, found.rows, answer.seconds or 0.0), None
        fewer = FewerLayers(module)
        counts = fewer.versions()
        answers = ask_all([fewer.with_layers(layers) for layers in counts], compiler, timeout_s)
    except ShardyError as error:
        if _OUT_OF_MEMORY.search(str(error)) is None:
            raise
        return None, str(error)
    versions = [version(answer, layers) for answer, layers in zip(answers, counts)]
    seconds = max(answer.seconds or 0.0 for answer in answers)  # they compile at the same time
    layers = [group.size for group in fewer.groups]
    peaks = [memory_peak(memory) for memory in memory_without_one(versions, layers) if memory]
    return _Compiled(
        whole_memory(versions, layers),
        whole_kinds(versions, layers),
        whole_rows(versions, layers),
        seconds,
        max(layers),
        tuple(sorted({count for one in versions for count in one.layers})),
        (min(peaks), max(peaks)) if peaks else None,
    ), None


def _memory(said: Cost) -> tuple[tuple[str, int], ...]:
    """The parts of the estimated memory, as compilers count them."""
    memory = said.estimate.memory
    temporary = memory.temporary_bytes + memory.constant_bytes
    return ("argument", memory.argument_bytes), ("output", memory.output_bytes), ("temp", temporary)


def _estimated(said: Cost, mesh: Mesh) -> list[AxesTotal]:
    """The collectives of an estimate by kind and axes."""
    found: dict[tuple[str, str], AxesTotal] = {}
    for row in said.estimate.collectives:
        named = None if row.axes is None else row.axes.split(", ")
        axes = _joined(None if named is None else [name for name in mesh.axis_names if name in named])
        _add(found, AxesTotal(row.kind, axes, row.count, row.sent_bytes_per_device))
    return list(found.values())


def _partitioned(traffic: Traffic, mesh: Mesh) -> list[AxesTotal]:
    """The collectives of a partitioned program by kind and axes."""
    found: dict[tuple[str, str], AxesTotal] = {}
    for row in traffic.collectives:
        given = row.axes
        names = [name for name in mesh.axis_names if any(axis.startswith(quote(name)) for axis in given or ())]
        axes = _joined(None if given is None else names)
        if row.is_counted:
            _add(found, AxesTotal(row.kind, axes, row.times, row.total_bytes, row.is_lower_bound))
    return list(found.values())


def _joined(names: list[str] | None) -> str:
    return OTHER_GROUPS if names is None else ", ".join(names)


def _add(found: dict[tuple[str, str], AxesTotal], more: AxesTotal) -> None:
    """Add collectives to those of their kind and axes."""
    key = more.kind, more.axes
    known = found.get(key)
    found[key] = (
        more
        if known is None
        else replace(
            more,
            count=known.count + more.count,
            sent_bytes_per_device=known.sent_bytes_per_device + more.sent_bytes_per_device,
            is_lower_bound=known.is_lower_bound or more.is_lower_bound,
        )
    )


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
