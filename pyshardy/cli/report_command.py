"""`pyshardy report`: a page to look at, as one file."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyshardy.cli.files import STANDARD_INPUT, naming
from pyshardy.cli.progress import stage
from pyshardy.errors import UsageError

if TYPE_CHECKING:
    from pyshardy.ir.module import Module

FORMATS = ("html", "json", "model-explorer")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command beside those that all commands have."""
    text = "where to write it (default report.html, or report.json; - is standard output)"
    parser.add_argument("-o", "--output", metavar="FILE", help=text)
    text = "another program, or the same with other annotations, to show beside this one"
    parser.add_argument("--compare", metavar="FILE2", help=text)
    text = "a page (html, default), its data (json), or what Model Explorer reads (model-explorer)"
    parser.add_argument("--format", choices=FORMATS, default="html", help=text)
    text = "look for annotations that make the program send less (default yes)"
    parser.add_argument("--hints", action=argparse.BooleanOptionalAction, default=True, help=text)
    text = "show what a run would cost on this chip (h100, v5p, ...), or on the one that a TOML file describes"
    parser.add_argument("--hardware", metavar="CHIP|FILE", help=text)


def report(module: Module, other: Module | None, arguments: argparse.Namespace, options: Any, partitioning: Any) -> str:
    """Write the report; where it is.

    Args:
        module: The program.
        other: What to compare it with.
        arguments: The command line.
        options: How to propagate.
        partitioning: How to partition.
    """
    from pyshardy.results.pages import write_report

    sources = [arguments.source] + ([] if other is None else [arguments.compare])
    results = [
        _partition(one, name, options, partitioning) for one, name in zip([module, other], sources) if one is not None
    ]
    path = _path(arguments)
    with stage("writing the report"), naming(arguments.source):
        write_report(
            results[0],
            path,
            compare=results[1] if len(results) > 1 else None,
            format=arguments.format,
            hints=arguments.hints,
            names=_names(sources),
            figures=[_figures(result, arguments.hardware) for result in results],
        )
    return path


def _path(arguments: argparse.Namespace) -> str:
    if arguments.json:
        if arguments.format == "model-explorer":
            raise UsageError("reading the command line", got="--json and --format model-explorer", needed="one of them")
        arguments.format = "json"
        arguments.output = arguments.output or "-"
    path = arguments.output or ("report.html" if arguments.format == "html" else "report.json")
    return "/dev/stdout" if path == "-" else str(path)


def _partition(module: Module, source: str, options: Any, partitioning: Any) -> Any:
    from dataclasses import replace

    from pyshardy.api import partition, propagate

    with stage("propagating"), naming(source):
        propagated = propagate(module, replace(options, trace=True))
    with stage("partitioning"), naming(source):
        return partition(propagated, partitioning)


def _names(sources: list[str]) -> list[str]:
    """The names of files, as short as they differ."""
    short = ["standard input" if name == STANDARD_INPUT else os.path.basename(name) or name for name in sources]
    return short if len(set(short)) == len(short) else sources


def _figures(result: Any, hardware: str | None) -> Mapping[str, str]:
    """What a run would cost, as texts."""
    if hardware is None:
        return {}
    from pyshardy.estimating import cost
    from pyshardy.report.summary import format_bytes, format_seconds

    found = cost(result, hardware).estimate
    return {
        f"a run on {found.hardware}, estimated": format_seconds(found.step_seconds),
        "of that, nothing but collectives run": format_seconds(found.exposed_seconds),
        f"memory of a {found.hardware}, {'enough' if found.fits else 'too little'}": format_bytes(
            int(found.memory_limit_bytes)
        ),
    }
