"""Search for the shardings of a program that make it fast on hardware that need not be there."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyshardy.api import load
from pyshardy.autopartition.registry import Partitioner, partitioner_in_use
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.hardware import Hardware
from pyshardy.errors import UsageError
from pyshardy.estimating import collective_model
from pyshardy.frontend.annotate import core_mesh, with_mesh
from pyshardy.ir.module import Module
from pyshardy.planning.options import DOING, MOST_CANDIDATES, Options
from pyshardy.planning.search import Search
from pyshardy.report.cost import format_duration
from pyshardy.results.plan import Plan


def search(
    program: Any,
    *example_args: Any,
    mesh: Any = None,
    devices: int | None = None,
    hardware: Hardware | str | Path = "v5p",
    memory: float | None = None,
    budget_s: float = 60.0,
    seed: int = 0,
    keep: bool | Iterable[str] = True,
    networks: Mapping[str, str] | None = None,
    shape: Sequence[int] | None = None,
    collectives: CollectiveModel | str = CollectiveModel.FORMULA,
    candidates: int = MOST_CANDIDATES,
    constraints: bool = True,
    progress: bool | Callable[[str], None] = False,
    partitioner: Partitioner | None = None,
    **keywords: Any,
) -> Plan:
    """Find shardings for the inputs of a program, and for values in between: by estimates, without the hardware.

    Args:
        program: What `load` returns or takes.
        example_args: For a function, its arguments, as for `load`.
        mesh: Axes with sizes, or a mesh; by default the one that the program has.
        devices: In the place of a mesh, how many devices there are: then the mesh is chosen as well, of one axis
            "data" or two, "data" and "model".
        hardware: The chip, as for `cost`.
        memory: Bytes that a device may use; by default what the chip has.
        budget_s: How long the search may take, in seconds, once the program is loaded.
        seed: Of what the search chooses at random. The same seed gives the same plan, unless time ends the search.
        keep: Whether shardings that inputs and outputs have are kept; or the names of those that are.
        networks: The networks of mesh axes, as for `cost`.
        shape: The dimensions of the torus, as for `cost`.
        collectives: How collectives are priced, as for `cost`.
        candidates: How many candidates to look at, at most; for constraints a tenth more.
        constraints: Whether values in between may be constrained, where that makes the plan better.
        progress: Whether to say on standard error what the best is so far; or a function that is told.
        partitioner: A function that finds the shardings in the place of our search, as `register_partitioner` takes it.
        keywords: For a function, as for `load`.

    Raises:
        UsageError: No mesh, or several; a chip that is not known; a budget that is none; a partitioner that is none.
        ShardyError: A program that cannot be propagated.

    >>> plan = search('''
    ... sdy.mesh @mesh = <["x"=8]>
    ... func.func @main(%a: tensor<8192x4096xbf16>, %b: tensor<4096x4096xbf16>) -> tensor<8192x4096xbf16> {
    ...   %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    ...     : (tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<8192x4096xbf16>
    ...   return %0 : tensor<8192x4096xbf16>
    ... }''', hardware="h100")
    >>> plan.fits, sorted(plan.specs)
    (True, ['arg0', 'arg1'])
    """
    if not isinstance(budget_s, (int, float)) or not 0 < budget_s < math.inf:
        raise UsageError(DOING, got=f"budget_s={budget_s!r}", needed="seconds, more than 0")
    if memory is not None and (not isinstance(memory, (int, float)) or not 0 < memory < math.inf):
        raise UsageError(DOING, got=f"memory={memory!r}", needed="bytes, more than 0")
    if devices is not None and mesh is not None:
        raise UsageError(DOING, got="mesh and devices", needed="one of them")
    chip = find_hardware(hardware)
    limit = chip.memory_bytes if memory is None else float(memory)
    options = Options(
        chip, networks, shape, collective_model(collectives), limit, budget_s, candidates, seed, constraints
    )
    say = progress if callable(progress) else _to_standard_error if progress else _to_nobody
    with partitioner_in_use(partitioner):
        if devices is not None:
            return _with_any_mesh(program, example_args, keywords, devices, options, keep, say)
        module = _load(program, example_args, mesh, keywords)
        return Search(module, options, keep, say).run()


def _to_standard_error(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _to_nobody(text: str) -> None:
    pass


def _load(program: Any, example_args: Sequence[Any], mesh: Any, keywords: Mapping[str, Any]) -> Module:
    is_function = callable(program) and bool(example_args)
    if is_function:
        return load(program, *example_args, mesh=mesh, **keywords)
    module = load(program, **keywords)
    return module if mesh is None else with_mesh(module, core_mesh(mesh))


def _with_any_mesh(
    program: Any,
    example_args: Sequence[Any],
    keywords: Mapping[str, Any],
    devices: int,
    options: Options,
    keep: bool | Iterable[str],
    say: Callable[[str], None],
) -> Plan:
    """The plan of the best mesh: tactics are tried on every mesh, the best two are searched."""
    if not isinstance(devices, int) or isinstance(devices, bool) or devices < 1:
        raise UsageError(DOING, got=f"devices={devices!r}", needed="a number from 1")
    started = time.monotonic()
    meshes = [
        {"data": devices // model, "model": model} if model > 1 else {"data": devices} for model in _divisors(devices)
    ]
    keep = keep if isinstance(keep, bool) else tuple(keep)
    ranked: list[tuple[tuple[float, float], int, dict[str, int]]] = []
    for axes in meshes:
        spent = time.monotonic() - started
        share = max(0.5, (options.budget_s / 3 - spent) / len(meshes))
        search_ = Search(_load(program, example_args, axes, keywords), replace(options, budget_s=share), keep, say)
        quick = search_.look()
        if quick is not None:
            say(f"mesh {axes}: about {format_duration(quick[0])}")
            ranked.append((quick, len(ranked), axes))
    if not ranked:
        raise UsageError(DOING, got=f"{devices} devices", needed="a program that some mesh of them fits")
    ranked.sort()
    left = max(1.0, options.budget_s - (time.monotonic() - started))
    plans = []
    for _, _, axes in ranked[:2]:
        module = _load(program, example_args, axes, keywords)
        plans.append(Search(module, replace(options, budget_s=left / len(ranked[:2])), keep, say).run())
    return min(plans, key=lambda plan: (not plan.fits, plan.step_seconds))


def _divisors(devices: int) -> list[int]:
    return [size for size in range(1, devices + 1) if devices % size == 0 and size <= 64]
