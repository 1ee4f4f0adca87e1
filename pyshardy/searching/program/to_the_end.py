"""Programs that a compiler compiles to the end: whole, or as what follows from versions with fewer layers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pyshardy.compilers.answer import CompilerAnswer
from pyshardy.compilers.ask import ask, ask_all
from pyshardy.core.mesh import Mesh
from pyshardy.costing.traffic import AxesTotal, KindTotal
from pyshardy.errors import ShardyError
from pyshardy.ir.module import Module
from pyshardy.report.confirmation import memory_peak
from pyshardy.report.extrapolation import ShortenedProgram, memory_without_one, whole_kinds, whole_memory, whole_rows
from pyshardy.runtime.hlo import hlo_collectives, hlo_kinds
from pyshardy.searching.program.fewer_layers import FewerLayers

_OUT_OF_MEMORY = re.compile(r"RESOURCE_EXHAUSTED|[Oo]ut of memory|Ran out of memory")
_USED = re.compile(r"Used ([\d.]+)([KMGT]?)i?B? of |required for [\w ]*\(([\d.]+)([KMGT]?)\) exceeds")
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """What a compiler made of the whole program, or what follows from versions with fewer layers.

    Attributes:
        memory: The bytes of a device by kind: "argument", "output", "alias", "temp" and "generated_code".
        kinds: The collectives by kind.
        rows: The collectives by kind and axes.
        seconds: The time of the compilation.
        layers: The number of layers of the whole program, if versions with fewer were compiled; else 0.
        versions: The numbers of layers of these versions.
        peak_range: The least and the most peak memory that follows without one of the versions; None if unknown.
    """

    memory: Mapping[str, int]
    kinds: tuple[KindTotal, ...]
    rows: tuple[AxesTotal, ...]
    seconds: float
    layers: int = 0
    versions: tuple[int, ...] = ()
    peak_range: tuple[int, int] | None = None


def compiled_to_the_end(
    module: Module, compiler: str, mesh: Mesh, timeout_s: float, shortened: bool
) -> tuple[CompiledProgram | None, str | None]:
    """What a compiler makes of a program, compiled to the end, or why it does not fit into memory.

    Args:
        module: The program.
        compiler: The name of the compiler.
        mesh: The mesh of the program.
        timeout_s: The limit in seconds.
        shortened: Whether to compile versions with a few of its layers instead, at the same time.

    Raises:
        UsageError: It is to be shortened, and has no layers that repeat.
        ShardyError: The compiler refuses it for another reason, crashes, or takes too long.
    """

    def version(answer: CompilerAnswer, layers: tuple[int, ...] = ()) -> ShortenedProgram:
        assert answer.compiled is not None
        text = answer.compiled
        return ShortenedProgram(layers, answer.memory or {}, hlo_kinds(text), hlo_collectives(text, mesh))

    try:
        if not shortened:
            answer = ask(module, compiler, to_the_end=True, timeout_s=timeout_s)
            found = version(answer)
            return CompiledProgram(found.memory, found.kinds, found.rows, answer.seconds or 0.0), None
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
    return CompiledProgram(
        whole_memory(versions, layers),
        whole_kinds(versions, layers),
        whole_rows(versions, layers),
        seconds,
        max(layers),
        tuple(sorted({count for one in versions for count in one.layers})),
        (min(peaks), max(peaks)) if peaks else None,
    ), None


def needed_bytes(message: str) -> int | None:
    """The bytes that a program needs, as a compiler says when it does not fit.

    >>> needed_bytes("Ran out of memory in memory space hbm. Used 30.50G of 15.75G hbm.")
    32749125632
    >>> needed_bytes("the total memory required for HLO temporaries (16.50G) exceeds available HBM (15.75G)")
    17716740096
    """
    match = _USED.search(message)
    if match is None:
        return None
    number, unit = (part for part in match.groups() if part is not None)
    return int(float(number) * (1 << _UNITS[unit]))
