"""`pyshardy`: propagate, look at, and run programs from the command line.

pyshardy run example --layers 4
pyshardy propagate model.mlir -o sharded.mlir
pyshardy show model.mlir
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from pyshardy.cli.files import naming, write_whole, writing_to_standard_output
from pyshardy.errors import ShardyError, UsageError

if TYPE_CHECKING:
    from pyshardy.api import Propagation

TOLERANCE = 1e-3
"""The largest |a-b|/(1+|b|) that `run` allows where the user says nothing."""
_EXAMPLE = "example"
_SIZES = "--layers --width --heads --vocabulary --batch --sequence --optimizer --learning_rate --data --model"


class _Parser(argparse.ArgumentParser):
    """Reports a wrong command line like every other error."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"reading the command line: {message}", hint=f"{self.prog} --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status: 0, 1 for a failure, 2 for a command line that makes no sense."""
    return writing_to_standard_output(lambda: _main(argv))


def _main(argv: Sequence[str] | None) -> int:
    try:
        arguments, rest = _parser().parse_known_args(argv)
        if rest and getattr(arguments, "source", None) != _EXAMPLE:
            raise UsageError("reading the command line", got=f"unknown argument '{rest[0]}'", hint="pyshardy --help")
        status: int = arguments.command(arguments, rest)
        return status
    except ShardyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="pyshardy", description="How is each tensor of my program sharded?", allow_abbrev=False)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=_Parser)

    propagate = _command(commands, "propagate", _propagate, "infer all shardings and write the module")
    propagate.add_argument("source", metavar="FILE", help="StableHLO text or bytecode; - is standard input")
    propagate.add_argument("-o", "--output", metavar="FILE", help="where to write the module (.mlirbc: bytecode)")
    _add_propagation_options(propagate)

    show = _command(commands, "show", _show, "infer all shardings and show them as tables")
    show.add_argument("source", metavar="FILE", help="StableHLO text or bytecode; - is standard input")
    _add_propagation_options(show)

    run = _command(commands, "run", _run, "infer all shardings, run the program, compare with one device")
    run.epilog = f"sizes of the example: {_SIZES}"
    run.add_argument("source", metavar="FILE|example", help="a StableHLO file, or the built-in training step")
    run.add_argument("--inputs", metavar="NPZ", help="arrays for the inputs; random ones without")
    run.add_argument("--seed", type=_seed, default=0, help="seed of the random inputs (default 0)")
    text = f"largest |a-b|/(1+|b|) allowed (default {TOLERANCE:g})"
    run.add_argument("--tolerance", type=_tolerance, default=TOLERANCE, help=text)
    _add_propagation_options(run)
    return parser


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"got '{text}', needed a whole number from 0")
    return int(text)


def _tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"got '{text}', needed a number from 0")
    return value


def _command(commands: Any, name: str, function: Any, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
    parser.set_defaults(command=function)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    text = "accept ops of dialects that jaxlib does not know, in generic form"
    parser.add_argument("--allow-unregistered-dialect", action="store_true", help=text)
    return parser


def _add_propagation_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("propagation")
    group.add_argument("--strategy", choices=("basic", "aggressive", "basic-then-aggressive"), default="aggressive")
    group.add_argument("--no-op-priorities", action="store_true", help="visit all kinds of ops in one round")
    group.add_argument("--no-user-priorities", action="store_true", help="ignore the priorities on dimensions")
    group.add_argument("--conservative", action="store_true", help="avoid sub-axes and axes that do not divide")


def _options(arguments: argparse.Namespace) -> Any:
    from pyshardy.propagation.options import PropagateOptions, StrategyOption

    return PropagateOptions(
        strategy=StrategyOption(arguments.strategy),
        op_priorities=not arguments.no_op_priorities,
        user_priorities=not arguments.no_user_priorities,
        conservative=arguments.conservative,
    )


def _propagate(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    result = _load_and_propagate(arguments)
    result.module.verify()
    is_bytecode = bool(arguments.output) and arguments.output.endswith((".mlirbc", ".bc"))
    content = result.module.bytecode() if is_bytecode else result.module.text().encode()
    if arguments.output and arguments.output != "-":
        write_whole(arguments.output, content)
    elif not arguments.json:
        sys.stdout.buffer.write(content)
    if arguments.json:
        _print_json(result.summary.to_json())
    _print_warnings(result)
    return 0


def _show(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    _print_result(arguments, _load_and_propagate(arguments))
    return 0


def _run(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    if arguments.source == _EXAMPLE and arguments.inputs:
        raise UsageError("reading the command line", got="--inputs for the example", needed="it for a file alone")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # XLA reads it when it is loaded, and is chatty without
    from pyshardy.cli import run_command

    report = run_command.run_example if arguments.source == _EXAMPLE else run_command.run_file
    result, differences = report(arguments, rest, _options(arguments))
    if arguments.json:
        _print_json(result.summary.to_json() | run_command.to_json(differences, arguments.tolerance))
    else:
        _print_result(arguments, result)
        run_command.print_differences(differences, arguments.tolerance)
    return 0 if run_command.is_equal(differences, arguments.tolerance) else 1


def _load_and_propagate(arguments: argparse.Namespace) -> Propagation:
    from pyshardy import api
    from pyshardy.cli.progress import stage
    from pyshardy.frontend.from_text import load_file

    with stage(f"reading {arguments.source}"):
        module = load_file(arguments.source, arguments.allow_unregistered_dialect)
    with stage("propagating"), naming(arguments.source):
        return api.propagate(module, _options(arguments))


def _print_result(arguments: argparse.Namespace, result: Propagation) -> None:
    if arguments.json:
        _print_json(result.summary.to_json())
        return
    from rich.console import Console

    from pyshardy.report.tables import summary_tables, summary_text

    if sys.stdout.isatty():
        Console().print(summary_tables(result.summary))
    else:
        sys.stdout.write(summary_text(result.summary))


def _print_json(data: dict[str, Any]) -> None:
    json.dump(data, sys.stdout, indent=2)
    sys.stdout.write("\n")


def _print_warnings(result: Propagation) -> None:
    for warning in result.summary.warnings:
        print(f"warning: {warning}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
