"""The command line of `pyshardy`: its parser, and the options that it stands for."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from pyshardy import __version__
from pyshardy.cli.check_command import add_arguments as add_check_arguments
from pyshardy.cli.completion import SHELLS
from pyshardy.cli.confirm_command import add_options as add_confirm_options
from pyshardy.cli.cost_command import add_options as add_cost_options
from pyshardy.cli.diff_command import add_arguments as add_diff_arguments
from pyshardy.cli.doctor_command import add_options as add_doctor_options
from pyshardy.cli.explain_command import add_arguments as add_explain_arguments
from pyshardy.cli.lock_command import add_options as add_lock_options
from pyshardy.cli.numbers import number_argument
from pyshardy.cli.report_command import add_options as add_report_options
from pyshardy.cli.search_command import add_options as add_search_options
from pyshardy.cli.watch_command import add_options as add_watch_options
from pyshardy.core.options import did_you_mean
from pyshardy.errors import UsageError

MOST_EXAMPLE_DEVICES = 4096
"""The most virtual CPU devices that a process can create in reasonable time."""
EXAMPLE = "example"
SIZES = "--layers --width --heads --vocabulary --batch --sequence --optimizer --learning_rate --data --model"


_CHOICE = re.compile(r"argument (\S+): invalid choice: '?(.*?)'? \(choose from (.*)\)$")
"""The message of argparse for a value that is not one of the choices."""


class _Parser(argparse.ArgumentParser):
    """A parser that reports a wrong command line like every other error."""

    def error(self, message: str) -> NoReturn:
        doing, hint = "reading the command line", f"{self.prog} --help"
        choice = _CHOICE.search(message)
        if choice:
            option, value, choices = choice[1], choice[2], re.findall(r"[\w-]+", choice[3])
            got = f"{option} {value}" if option.startswith("-") else f"the {option.lower()} {value!r}"
            needed = f"one of {', '.join(choices)}"
            raise UsageError(doing, got=got, needed=needed, hint=did_you_mean(value, choices) or hint)
        raise UsageError(f"{doing}: {message}", hint=hint)


def make_parser() -> argparse.ArgumentParser:
    """The parser. Its result has the name of the command as `command`."""
    parser = _Parser(prog="pyshardy", description="How is each tensor of my program sharded?", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"pyshardy {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=_Parser)

    for add in _COMMANDS:
        add(commands)
    return parser


def _add_propagate(commands: Any) -> None:
    propagate = _command(commands, "propagate", "infer all shardings and write the module")
    _add_output(propagate)
    _add_propagation_options(propagate)


def _add_show(commands: Any) -> None:
    show = _command(commands, "show", "infer all shardings and show them as tables")
    show.add_argument("--compare", action="store_true", help="show where XLA decided otherwise, by its dump")
    text = "show values of ops instead: a path, FILE:LINE, a name scope, a function or an op; * stands for any text"
    show.add_argument("--values", metavar="PATTERN", help=text)
    _add_table_options(show)
    _add_propagation_options(show)


def _add_explain(commands: Any) -> None:
    explain = _command(commands, "explain", "explain the sharding of a value, or why devices communicate")
    add_explain_arguments(explain)
    _add_propagation_options(explain)


def _add_diff(commands: Any) -> None:
    diff = _command(commands, "diff", "show what differs between two programs, or what another annotation changes")
    add_diff_arguments(diff)
    _add_table_options(diff)
    _add_propagation_options(diff)


def _add_partition(commands: Any) -> None:
    partition = _command(commands, "partition", "make the program of one device, show its collectives")
    _add_output(partition)
    _add_table_options(partition)
    _add_partition_options(partition)
    _add_propagation_options(partition)


def _add_cost(commands: Any) -> None:
    cost = _command(commands, "cost", "estimate time and memory per device on hardware that need not be there")
    add_cost_options(cost)
    _add_partition_options(cost)
    _add_propagation_options(cost)


def _add_confirm(commands: Any) -> None:
    text = "compile to the end for devices that need not be there: memory, collectives, what cost had said"
    confirm = _command(commands, "confirm", text)
    add_confirm_options(confirm)
    _add_propagation_options(confirm)


def _add_lock(commands: Any) -> None:
    lock = _command(commands, "lock", "write what is to be reviewed when it changes: shardings, collectives, memory")
    add_lock_options(lock)
    _add_propagation_options(lock)


def _add_check(commands: Any) -> None:
    check = _command(commands, "check", "compare with what pyshardy lock wrote, and show the difference as a diff")
    add_check_arguments(check)
    _add_propagation_options(check)


def _add_doctor(commands: Any) -> None:
    doctor = _command(commands, "doctor", "find what costs most, and try what mends it: at most three findings")
    add_doctor_options(doctor)
    _add_propagation_options(doctor)


def _add_report(commands: Any) -> None:
    report = _command(commands, "report", "write a page: one HTML file that needs no network")
    add_report_options(report)
    _add_partition_options(report)
    _add_propagation_options(report)


def _add_search(commands: Any) -> None:
    search = _command(commands, "search", "find shardings of the inputs that make it fast, by estimates")
    add_search_options(search)


def _add_run(commands: Any) -> None:
    run = _command(commands, "run", "infer all shardings, run the program, compare with one device")
    run.add_argument("--inputs", metavar="NPZ", help="arrays for the inputs; random ones without")
    run.add_argument("--seed", type=_seed, default=0, help="seed of the random inputs (default 0)")
    run.add_argument("--devices", type=_count, help="number of virtual CPU devices (default: as many as the mesh has)")
    text = "what runs it: the partitioned program (local, interpreter) or XLA's partitioner (xla); default local"
    run.add_argument("--engine", choices=("local", "xla", "interpreter"), default="local", help=text)
    run.add_argument("--force", action="store_true", help="run even if memory seems to be too small")
    text = "whether to compare the outputs with those of one device (default yes)"
    run.add_argument("--check", action=argparse.BooleanOptionalAction, default=True, help=text)
    text = "largest |a-b|/(1+|b|) allowed (default: as much as rounding does in this program)"
    run.add_argument("--tolerance", type=_tolerance, help=text)
    text = "also say how large errors are, and which errors the comparison would miss"
    run.add_argument("--details", action="store_true", help=text)
    _add_table_options(run)
    _add_partition_options(run)
    _add_propagation_options(run)


def _add_watch(commands: Any) -> None:
    text = "run a script unchanged, and show every program that jax.jit compiles in it"
    watch = commands.add_parser("watch", help=text, description=text, allow_abbrev=False)
    watch.set_defaults(command="watch", source=None, parser=watch)
    add_watch_options(watch)
    _add_user_code_options(watch)


def _add_completion(commands: Any) -> None:
    text = "print the script that lets a shell complete command lines: source <(pyshardy completion bash)"
    completion = commands.add_parser("completion", help=text, description=text, allow_abbrev=False)
    completion.add_argument("shell", choices=SHELLS)
    completion.set_defaults(command="completion", source=None, commands=commands.choices, parser=completion)


_COMMANDS = (
    _add_propagate,
    _add_show,
    _add_explain,
    _add_diff,
    _add_partition,
    _add_cost,
    _add_confirm,
    _add_lock,
    _add_check,
    _add_doctor,
    _add_report,
    _add_search,
    _add_run,
    _add_watch,
    _add_completion,
)


def _count(text: str) -> int:
    return number_argument(text, 1, MOST_EXAMPLE_DEVICES)


def _seed(text: str) -> int:
    return number_argument(text, 0, 2**63 - 1)


def _tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"got '{text}', needed a number from 0")
    return value


def refuse_unknown(arguments: argparse.Namespace, rest: Sequence[str]) -> None:
    """Raise `UsageError` for what is left of a command line, unless the sizes of the example may be meant."""
    is_example = arguments.source == EXAMPLE
    sizes = SIZES.split() if is_example else []
    flags = [flag for action in arguments.parser._actions for flag in action.option_strings]
    known = [flag[2:] for flag in (*flags, *sizes) if flag.startswith("--")]
    for given in rest:
        name = given.partition("=")[0]
        close = did_you_mean(name[2:], known) if name.startswith("--") else None
        if not is_example or (close and name not in sizes):
            hint = f"--{close}" if close else f"{arguments.parser.prog} --help"
            raise UsageError("reading the command line", got=f"unknown argument '{given}'", hint=hint)


def refuse_for_example(arguments: argparse.Namespace) -> None:
    """Raise `UsageError` for options that the example would ignore, unless they are for a second program in a file."""
    doing, command = "reading the command line", arguments.command
    second = arguments.other if command == "diff" else arguments.compare if command == "report" else None
    for option in ("module", "isolate", "allow_unregistered_dialect"):
        if getattr(arguments, option) and (second is None or (command == "diff" and option == "module")):
            raise UsageError(doing, got=f"--{option.replace('_', '-')} for the example", needed="it for a file alone")
    if arguments.mesh and not arguments.shard and command not in ("cost", "search"):
        hint = f"pyshardy {command} example --data 4 --model 2"
        raise UsageError(doing, got="--mesh for the example", needed="the sizes of its axes", hint=hint)


def _command(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
    parser.set_defaults(command=name, parser=parser)
    parser.epilog = f"sizes of the example: {SIZES}"
    text = "StableHLO, HLO or what jax.export writes (- is standard input); XLA's dump; or the built-in training step"
    parser.add_argument("source", metavar="FILE|example", help=text)
    parser.add_argument("--module", metavar="NAME", help="which module of a dump with several (also DIR::NAME)")
    text = "the axes that --shard and GSPMD's tilings are over, like data=4,model=2 (default: those of the program)"
    parser.add_argument("--mesh", metavar="AXES", help=text)
    text = "the sharding of inputs or outputs, like 'params.*.w1=None,model' (+ joins axes, ? is open, @0 a priority)"
    parser.add_argument("--shard", action="append", metavar="NAME=SPEC", help=text)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--times", action="store_true", help="show the time of every step")
    text = "write the module at every stage to DIR, as XLA does, with index.html (also by PYSHARDY_DUMP_TO=DIR)"
    parser.add_argument("--dump-to", metavar="DIR", help=text)
    text = "accept ops of dialects that jaxlib does not know, in generic form"
    parser.add_argument("--allow-unregistered-dialect", action="store_true", help=text)
    _add_user_code_options(parser)
    text = "read the file in a separate process: for untrusted bytecode, which may crash MLIR's reader"
    parser.add_argument("--isolate", action="store_true", help=text)
    return parser


def _add_user_code_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("source lines")
    text = "count a package as a library, so that lines are those of its callers, like maxtext (may be repeated)"
    group.add_argument("--library", action="append", default=[], metavar="PACKAGE", help=text)
    text = "count a package as your own code, so that lines are in it, like flax.linen (may be repeated)"
    group.add_argument("--user-code", action="append", default=[], metavar="PACKAGE", help=text)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write the module (.mlirbc: bytecode)")
    text = "whether text has the names of arguments and source lines (default: yes, but on a terminal)"
    parser.add_argument("--locations", action=argparse.BooleanOptionalAction, help=text)


def _add_table_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("tables")
    text = "one row per tensor and collective; by default, repeated layers share a row"
    group.add_argument("--all", action="store_true", help=text)
    text = "write shardings as P('data') where possible (spec, default), or as in the sdy dialect (sdy)"
    group.add_argument("--notation", choices=("spec", "sdy"), default="spec", help=text)


def _add_propagation_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("propagation")
    group.add_argument("--strategy", choices=("basic", "aggressive", "basic-then-aggressive"), default="aggressive")
    text = "propagate through the program as XLA rewrites it (default), as XLA for TPUs does, or the module unchanged"
    group.add_argument("--view", choices=("xla", "tpu", "stablehlo"), default="xla", help=text)
    text = (
        "ask a compiler, like tpu:v5e:2x4, cuda:h100 or cpu: shardings and collectives as it has them; tpu or cuda "
        "alone stands for the chip that prices are for, or v5e and h100 (default: that of the platform that the "
        "program was lowered for, if it is installed; none: do not ask)"
    )
    group.add_argument("--compiler", metavar="NAME", help=text)
    group.add_argument("--no-op-priorities", action="store_true", help="visit all kinds of ops in one round")
    group.add_argument("--no-user-priorities", action="store_true", help="ignore the priorities on dimensions")
    group.add_argument("--conservative", action="store_true", help="avoid sub-axes and axes that do not divide")
    text = "record at every tensor, in modules and dumps, which annotations its axes come from"
    group.add_argument("--origins", action="store_true", help=text)
    text = "record at every op, in modules and dumps, how axes propagated through it, and in which step"
    group.add_argument("--edges", action="store_true", help=text)


def _add_partition_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("partitioning")
    group.add_argument("--no-halo-exchange", action="store_true", help="gather where devices could exchange halos")
    text = "write replica groups as mesh axes, or as device ids; by default as axes where XLA reads both alike"
    group.add_argument("--mesh-axes-groups", action=argparse.BooleanOptionalAction, help=text)
    text = "let random bits depend on the sharding"
    group.add_argument("--rng-bit-generator-unsafe", "--unsafe-random", action="store_true", help=text)
    text = "refuse ops that cannot run on shards instead of gathering for them"
    group.add_argument("--no-replicate-unsupported", action="store_true", help=text)


def partition_options(arguments: argparse.Namespace) -> Any:
    """The partitioning options of a command line."""
    from pyshardy.passes.partition_options import PartitionOptions

    return PartitionOptions(
        halo_exchange=not arguments.no_halo_exchange,
        mesh_axes_groups=arguments.mesh_axes_groups,
        rng_bit_generator_unsafe=arguments.rng_bit_generator_unsafe,
        replicate_unsupported=not arguments.no_replicate_unsupported,
    )


def table_options(arguments: argparse.Namespace) -> Any:
    """The display options of a command line."""
    from pyshardy.report.printing import TableOptions
    from pyshardy.report.specs import Notation

    return TableOptions(Notation(arguments.notation), arguments.all, arguments.times)


def propagate_options(arguments: argparse.Namespace) -> Any:
    """The propagation options of a command line."""
    from pyshardy.propagation.options import PropagateOptions, StrategyOption, View

    return PropagateOptions(
        strategy=StrategyOption(arguments.strategy),
        view=View(arguments.view),
        compiler=_compiler(arguments),
        op_priorities=not arguments.no_op_priorities,
        user_priorities=not arguments.no_user_priorities,
        conservative=arguments.conservative,
        origins=arguments.origins,
        edges=arguments.edges,
    )


def _compiler(arguments: argparse.Namespace) -> str | None:
    """The compiler of a command line: none, one by its whole name, or a platform with the chip of `--hardware`."""
    from pyshardy.compilers.target import compiler_name, with_chip

    name = arguments.compiler
    return None if name is None else compiler_name(with_chip(name, getattr(arguments, "hardware", None) or ""))
