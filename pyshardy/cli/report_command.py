"""`pyshardy report`: a page as one file."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from pyshardy.cli.files import naming
from pyshardy.cli.progress import stage
from pyshardy.core.files import write_whole
from pyshardy.core.text import STANDARD_INPUT
from pyshardy.errors import UsageError

if TYPE_CHECKING:
    from pyshardy.ir.module import Module
    from pyshardy.report.diagnosis import Diagnosis


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that only this command has."""
    text = "where to write it (default report.html, or report.json; - is standard output)"
    parser.add_argument("-o", "--output", metavar="FILE", help=text)
    text = "another program, or the same with other annotations, to show beside this one"
    parser.add_argument("--compare", metavar="FILE2", help=text)
    text = "a page (html, default), its data (json), or what Model Explorer reads (model-explorer)"
    parser.add_argument("--format", choices=("html", "json", "model-explorer"), default="html", help=text)
    text = (
        "search for annotations that make the program send less, and with --hardware for what costs most (default yes)"
    )
    parser.add_argument("--hints", action=argparse.BooleanOptionalAction, default=True, help=text)
    text = "show the estimated cost of a run on this chip (h100, v5p, ...), or on one that a TOML file describes"
    parser.add_argument("--hardware", metavar="CHIP|FILE", help=text)


def report(module: Module, other: Module | None, arguments: argparse.Namespace, options: Any, partitioning: Any) -> str:
    """Write the report to a file or to standard output; return a message about it.

    Args:
        module: The program.
        other: The program to compare it with.
        arguments: The command line.
        options: How to propagate.
        partitioning: How to partition.

    Raises:
        UsageError: Options contradict each other, or the file cannot be written.
    """
    from pyshardy.results.pages import report_bytes

    path = _path(arguments)
    sources = [arguments.source] + ([] if other is None else [arguments.compare])
    results = [
        _partition(one, name, options, partitioning) for one, name in zip([module, other], sources) if one is not None
    ]
    with stage("estimating"), naming(arguments.source):
        runs = [_run(result, arguments.hardware) for result in results]
    diagnoses = [_diagnosis(result, arguments) for result in results]
    with stage("writing the report"), naming(arguments.source):
        content = report_bytes(
            results,
            arguments.format,
            hints=arguments.hints,
            names=_names(sources),
            runs=runs,
            diagnoses=diagnoses,
        )
    if path == "-":
        sys.stdout.buffer.write(content)
        return ""
    write_whole(path, content)
    return f"wrote {path}: open it in a browser\n" if arguments.format == "html" else f"wrote {path}\n"


def _path(arguments: argparse.Namespace) -> str:
    """The file to write; `--json` goes to standard output unless a file is named."""
    if arguments.json:
        if arguments.format not in ("html", "json"):
            got = f"--json and --format {arguments.format}"
            raise UsageError("reading the command line", got=got, needed="one of them")
        arguments.format = "json"
    default = "-" if arguments.json else "report.html" if arguments.format == "html" else "report.json"
    return default if arguments.output is None else str(arguments.output)


def _partition(module: Module, source: str, options: Any, partitioning: Any) -> Any:
    from dataclasses import replace

    from pyshardy.api.partition import partition
    from pyshardy.api.propagate import propagate

    with stage("propagating"), naming(source):
        propagated = propagate(module, replace(options, trace=True))
    with stage("partitioning"), naming(source):
        return partition(propagated, partitioning)


def _names(sources: list[str]) -> list[str]:
    """The names of files, shortened as far as they still differ."""
    short = ["standard input" if name == STANDARD_INPUT else os.path.basename(name) or name for name in sources]
    if len(set(short)) == len(short):
        return short
    return sources if len(set(sources)) == len(sources) else [f"{name} ({at})" for at, name in enumerate(short, 1)]


def _diagnosis(result: Any, arguments: argparse.Namespace) -> Diagnosis | None:
    """What costs most on a chip; None if no chip is named, or if hints are not wanted."""
    if arguments.hardware is None or not arguments.hints or result.device_count < 2:
        return None
    from pyshardy.checkup.doctor import doctor

    with stage("looking for what costs most") as say, naming(arguments.source):
        return doctor(result, hardware=arguments.hardware, progress=say)


def _run(result: Any, hardware: str | None) -> Any:
    """The kernels and the estimate of a run; None if no chip is named."""
    if hardware is None:
        return None
    from pyshardy.api.cost import cost

    found = cost(result, hardware)
    return None if found.launches is None else (found.launches, found.estimate)
