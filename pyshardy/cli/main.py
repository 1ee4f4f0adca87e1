"""`pyshardy`: propagate, look at, partition and run programs from the command line.

pyshardy run example --layers 4
pyshardy propagate model.mlir -o sharded.mlir
pyshardy show model.mlir
pyshardy partition model.mlir -o per_device.mlir
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pyshardy.cli.arguments import EXAMPLE, make_parser, partition_options, propagate_options
from pyshardy.cli.files import OUT_OF_MEMORY, naming, write_whole, writing_to_standard_output
from pyshardy.errors import ShardyError, UsageError

if TYPE_CHECKING:
    from pyshardy.api import Propagation
    from pyshardy.ir.module import Module


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status.

    0, 1 for a failure, 2 for a command line that makes no sense, 3 for a comparison that says nothing.
    """
    return writing_to_standard_output(lambda: _main(argv))


def _main(argv: Sequence[str] | None) -> int:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # XLA reads it when it is loaded, and is chatty without
    try:
        arguments, rest = make_parser().parse_known_args(argv)
        if rest and arguments.source != EXAMPLE:
            raise UsageError("reading the command line", got=f"unknown argument '{rest[0]}'", hint="pyshardy --help")
        return _COMMANDS[arguments.command](arguments, rest)
    except ShardyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except MemoryError:
        print(f"error: {OUT_OF_MEMORY}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _propagate(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    result = _load_and_propagate(arguments, rest)
    result.module.verify()
    summary = result.summary  # whatever may fail comes before anything is written
    _write_module(result.module, arguments.output, to_standard_output=not arguments.json)
    if arguments.json:
        _print_json(summary.to_json())
    _print_warnings(summary.warnings)
    return 0


def _write_module(module: Module, path: str | None, to_standard_output: bool) -> None:
    """Write a module to a file, or to standard output if there is none and that is wanted."""
    is_bytecode = bool(path) and str(path).endswith((".mlirbc", ".bc"))
    if path and path != "-":
        write_whole(path, module.bytecode() if is_bytecode else module.text().encode())
    elif path or to_standard_output:
        sys.stdout.buffer.write(module.text().encode())


def _partition(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    from pyshardy import partitioning
    from pyshardy.cli.progress import stage

    module = _load(arguments, rest)
    with stage("partitioning"), naming(arguments.source):
        result = partitioning.partition(module, partition_options(arguments), propagate_options(arguments))
        data = result.to_json()  # whatever may fail comes before anything is written
    _write_module(result.module, arguments.output, to_standard_output=False)
    if arguments.json:
        _print_json(data)
    elif arguments.output != "-":
        from pyshardy.report.tables import traffic_tables

        _print_tables(traffic_tables(result.traffic))
    _print_warnings(result.warnings)
    return 0


def _show(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    if arguments.compare:
        return _compare(arguments, rest)
    result = _load_and_propagate(arguments, rest)
    if arguments.json:
        _print_json(result.summary.to_json())
    else:
        from pyshardy.report.tables import summary_tables

        _print_tables(summary_tables(result.summary))
    return 0


def _compare(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    """Show where the shardings differ from those that XLA decided on; the exit status is 1 if any do."""
    from pyshardy.frontend.decided import compare, dump_shardings
    from pyshardy.frontend.from_dump import is_dump

    if arguments.source == EXAMPLE or not is_dump(arguments.source):
        got = "the example" if arguments.source == EXAMPLE else arguments.source
        raise UsageError("comparing with a dump", got=got, needed="a directory that XLA dumped to")
    decided = dump_shardings(arguments.source, arguments.module, arguments.isolate)
    found = compare(_load_and_propagate(arguments, rest).module, decided)
    if arguments.json:
        _print_json(found.to_json())
    else:
        print(found)
    return 1 if found.differences else 0


def _run(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    if arguments.source == EXAMPLE and arguments.inputs:
        raise UsageError("reading the command line", got="--inputs for the example", needed="it for a file alone")
    if arguments.source == EXAMPLE and arguments.shard:
        raise UsageError(
            "reading the command line", got="--shard for the example", needed="show or partition, or a file"
        )
    from pyshardy.cli import run_command
    from pyshardy.cli.verdict import exit_status, print_comparison

    execute = run_command.run_example if arguments.source == EXAMPLE else run_command.run_file
    found = execute(arguments, rest, propagate_options(arguments), partition_options(arguments))
    if arguments.json:
        _print_json(run_command.to_json(found, arguments.tolerance))
    else:
        _print_tables(run_command.tables(found))
        print_comparison(found.differences, arguments.tolerance)
    return exit_status(found.differences, arguments.tolerance)


def _load(arguments: argparse.Namespace, rest: Sequence[str]) -> Module:
    """The program of a command: the built-in one, of which `rest` holds the sizes, or that in a file."""
    if arguments.source == EXAMPLE:
        from pyshardy.cli.example import load_example
        from pyshardy.cli.files import with_shardings

        return with_shardings(load_example(rest).module, arguments)
    from pyshardy.cli.files import load_source
    from pyshardy.cli.progress import stage

    with stage(f"reading {arguments.source}"):
        return load_source(arguments)


def _load_and_propagate(arguments: argparse.Namespace, rest: Sequence[str]) -> Propagation:
    from pyshardy import api
    from pyshardy.cli.progress import stage

    module = _load(arguments, rest)
    with stage("propagating"), naming(arguments.source):
        return api.propagate(module, propagate_options(arguments))


def _print_tables(tables: Any) -> None:
    """Print tables as the terminal has room for them, or as plain text where nobody is watching."""
    from rich.console import Console

    from pyshardy.report.tables import plain_text

    if sys.stdout.isatty():
        Console().print(tables)
    else:
        sys.stdout.write(plain_text(tables))


def _print_json(data: dict[str, Any]) -> None:
    json.dump(data, sys.stdout, indent=2)
    sys.stdout.write("\n")


def _print_warnings(warnings: Iterable[str]) -> None:
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


_COMMANDS = {"propagate": _propagate, "show": _show, "partition": _partition, "run": _run}


if __name__ == "__main__":
    sys.exit(main())
