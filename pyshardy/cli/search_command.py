"""`pyshardy search`: finds shardings that make a program fast, on a chip that need not be present."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from typing import Any

from pyshardy.cli.cost_command import add_hardware_options, parse_networks, parse_shape, parse_sizes
from pyshardy.core.files import write_whole
from pyshardy.core.text import parse_bytes
from pyshardy.errors import UsageError

_READING = "reading the command line"


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that only this command has."""
    add_hardware_options(parser)
    text = "what a device may use, like 60GiB (default: what the chip has)"
    parser.add_argument("--memory", metavar="BYTES", help=text)
    text = "instead of --mesh: also choose a mesh, of this many devices, or of one of several numbers, like 64,128"
    parser.add_argument("--devices", metavar="N", help=text)
    parser.add_argument("--budget", metavar="SECONDS", default="60", help="how long it may take (default 60)")
    parser.add_argument("--seed", metavar="N", default="0", help="the seed of random choices (default 0)")
    text = "ignore the shardings that inputs and outputs have (default: they are kept)"
    parser.add_argument("--let-go", action="store_true", help=text)
    text = "an axis that inputs may not have, like params=data, or 'tokens=*' for all axes (may be repeated)"
    parser.add_argument("--forbid", metavar="NAME=AXIS", action="append", default=[], help=text)
    text = "keep inputs of fewer bytes whole, like 1MiB"
    parser.add_argument("--whole-below", metavar="BYTES", help=text)
    text = "the most mesh axes that an input, or a constrained value, is split along (default: any number)"
    parser.add_argument("--axes-at-most", metavar="N", help=text)
    text = "what decides: the time of a step (default), memory, for a larger batch, or chip-seconds, for --devices N,M"
    parser.add_argument("--goal", choices=("time", "memory", "chip-seconds"), default="time", help=text)
    parser.add_argument("--save", metavar="FILE", help="write the plan to a file, for pyshardy.load_plan")
    parser.add_argument("--no-constraints", action="store_true", help="do not constrain intermediate values")
    text = "write the constraints of intermediate values as a patch of the source"
    parser.add_argument("--patch", metavar="FILE", help=text)
    text = "ask a compiler, like tpu:v5e:2x4, about the best plans, and choose by its programs (default: do not ask)"
    parser.add_argument("--compiler", metavar="NAME", help=text)
    text = "write the plan as Python source: its rules, and a function that gives arguments their shardings"
    parser.add_argument("--code", metavar="FILE", help=text)
    text = "write a page: the plan, what it was chosen from, and the program with its shardings"
    parser.add_argument("--report", metavar="FILE", help=text)
    parser.add_argument("--quiet", action="store_true", help="print no progress")


def finds(module: Any, mesh: str | None, arguments: argparse.Namespace) -> Any:
    """The plan for a loaded module, on its mesh, on a mesh of other sizes, or on a new mesh."""
    from pyshardy.api.search import search
    from pyshardy.ir.mesh_sizes import has_mesh_axes, with_mesh_sizes

    if arguments.devices is not None and mesh:
        raise UsageError(_READING, got="--mesh and --devices", needed="one of them")
    if mesh and has_mesh_axes(module, parse_sizes(mesh, "--mesh")):
        module, mesh = with_mesh_sizes(module, parse_sizes(mesh, "--mesh")), None
    plan = search(
        module,
        mesh=mesh,
        devices=None if arguments.devices is None else [_whole("--devices", n) for n in arguments.devices.split(",")],
        hardware=arguments.hardware,
        compiler=arguments.compiler,
        memory=None if arguments.memory is None else _bytes("--memory", arguments.memory),
        budget_s=_seconds(arguments.budget),
        seed=_whole("--seed", arguments.seed),
        keep=not arguments.let_go,
        networks=parse_networks(arguments.networks),
        shape=parse_shape(arguments.shape),
        collectives=arguments.collectives,
        constraints=not arguments.no_constraints,
        progress=not arguments.quiet,
        forbid=_forbidden(arguments.forbid),
        axes_at_most=None if arguments.axes_at_most is None else _whole("--axes-at-most", arguments.axes_at_most),
        goal=arguments.goal,
        whole_below=0.0 if arguments.whole_below is None else _bytes("--whole-below", arguments.whole_below),
    )
    patch = plan.patch() if arguments.patch is not None else ""  # whatever may fail comes before anything is written
    code = plan.code() if arguments.code is not None else ""
    if arguments.save is not None:
        plan.save(arguments.save)
    if arguments.code is not None:
        write_whole(arguments.code, code.encode())
    if arguments.report is not None:
        plan.report(arguments.report)
    if arguments.patch is not None:
        told, mark, diff = patch.partition("--- ")
        write_whole(arguments.patch, f"{mark}{diff}".encode())
        for line in told.splitlines():
            print(f"not in {arguments.patch}: {line}", file=sys.stderr)
    return plan


def _forbidden(texts: Sequence[str]) -> dict[str, list[str]]:
    """The axes of options like "params=data", by names."""
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, axes = text.rpartition("=")
        if not equals or not name or not axes:
            raise UsageError(_READING, got=f"--forbid {text}", needed="NAME=AXIS", hint="--forbid params=data")
        found.setdefault(name, []).extend(axes.split("+"))
    return found


def _bytes(option: str, text: str) -> float:
    found = parse_bytes(text)
    if found is None:
        raise UsageError(_READING, got=f"{option} {text}", needed="bytes, like 60GiB")
    return found


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise UsageError(_READING, got=f"--budget {text}", needed="seconds, more than 0")
    return value


def _whole(option: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise UsageError(_READING, got=f"{option} {text}", needed="a whole number")
    return int(text)
