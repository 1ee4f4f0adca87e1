"""The public function that compiles a program to the end, ahead of time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyshardy.api.cost import cost
from pyshardy.api.partition import partition
from pyshardy.api.propagate import propagate
from pyshardy.compilers.ask import TIMEOUT_S
from pyshardy.compilers.target import compiler_name
from pyshardy.core.mesh import Mesh, largest_mesh
from pyshardy.core.text import quote
from pyshardy.costing.traffic import OTHER_GROUPS, AxesTotal, Traffic
from pyshardy.errors import UsageError
from pyshardy.report.confirmation import Confirmation, check_collectives
from pyshardy.results.cost import Cost
from pyshardy.searching.program.to_the_end import compiled_to_the_end, needed_bytes


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
    compiled, refused = compiled_to_the_end(result.before, name, mesh, timeout_s, shortened)
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
        needed_bytes=None if refused is None else needed_bytes(refused),
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
