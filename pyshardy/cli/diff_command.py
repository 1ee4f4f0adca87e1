"""`pyshardy diff`: the difference between two programs, or the effect of another annotation."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyshardy.cli.files import load_source, naming, shardings_of
from pyshardy.cli.progress import stage
from pyshardy.errors import UsageError

if TYPE_CHECKING:
    from pyshardy.ir.module import Module
    from pyshardy.propagation.options import PropagateOptions
    from pyshardy.report.difference import Difference
    from pyshardy.report.plan_difference import PlanDifference
    from pyshardy.results.propagation import Propagation

_PLAN = ".json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `pyshardy diff`."""
    text = "the program to compare with, or a plan (*.json) beside a plan; without it, --edit gives the change"
    parser.add_argument("other", metavar="FILE", nargs="?", help=text)
    parser.usage = "%(prog)s [-h] FILE|example [FILE] [--edit NAME=SPEC] [options and sizes of the example]"
    text = "the sharding of an input or output to try, as for --shard; NAME alone removes its annotation"
    parser.add_argument("--edit", action="append", metavar="NAME=SPEC", help=text)
    text = "whether to partition both and compare what the devices send (default yes)"
    parser.add_argument("--collectives", action=argparse.BooleanOptionalAction, default=True, help=text)


def take_other(arguments: argparse.Namespace, rest: list[str]) -> list[str]:
    """Take a second file after options, which `argparse` does not parse; return the remaining arguments."""
    if arguments.other is not None:
        return rest
    at = 0
    while at < len(rest) and rest[at].startswith("-"):  # a size of the example, with its value
        at += 1 if "=" in rest[at] else 2
    if at != len(rest) - 1:
        return rest
    arguments.other = rest[at]
    return rest[:at]


def find_difference(
    load: Callable[[], Module], arguments: argparse.Namespace, options: PropagateOptions
) -> Difference | PlanDifference:
    """The difference of two programs or of two plans, or the effect of an edit.

    Args:
        load: Reads the first program.
        arguments: The command line: `source`, `other`, `edit`, `collectives`.
        options: How to propagate.

    Raises:
        UsageError: Neither another program nor an edit, or both; or a plan beside a program.
    """
    if arguments.source.endswith(_PLAN) or (arguments.other or "").endswith(_PLAN):
        return _of_plans(arguments)
    if (arguments.other is None) == (not arguments.edit):
        got = "one FILE and no --edit" if arguments.other is None else "a second FILE and --edit"
        needed = "either a second FILE or --edit NAME=SPEC"
        raise UsageError("reading the command line", got=got, needed=needed)
    edits = shardings_of(arguments.edit or [], "--edit")
    before = _propagated(load(), arguments.source, options)
    if arguments.edit:
        with stage("propagating the edit"), naming(arguments.source):
            found = before.edit(edits).difference
    else:
        found = _compared(before, arguments, options)
    if not arguments.collectives:
        return found.without_communication()
    with stage("partitioning both"), naming(arguments.source):
        _ = found.communication
    return found


def _of_plans(arguments: argparse.Namespace) -> PlanDifference:
    from pyshardy.report.plan_difference import plan_difference
    from pyshardy.results.plan import load_plan

    files = [arguments.source, arguments.other]
    if arguments.edit or not all(name is not None and name.endswith(_PLAN) for name in files):
        given = " and ".join(str(name) for name in files if name is not None) + (
            " and --edit" if arguments.edit else ""
        )
        hint = "pyshardy search FILE --save plan.json writes a plan"
        raise UsageError("comparing plans", got=given, needed="two plans, both named *.json", hint=hint)
    before, after = map(load_plan, files)
    return plan_difference(before.summary, after.summary)


def _compared(before: Propagation, arguments: argparse.Namespace, options: PropagateOptions) -> Difference:
    from pyshardy.results.compare import compare_results

    other = argparse.Namespace(**{**vars(arguments), "source": arguments.other, "module": None})
    with stage(f"reading {other.source}"):
        module = load_source(other)
    return compare_results(before, _propagated(module, other.source, options))


def _propagated(module: Module, source: str, options: PropagateOptions) -> Propagation:
    from pyshardy.api.propagate import propagate

    with stage("propagating"), naming(source):
        return propagate(module, options)


def exit_status_of(arguments: argparse.Namespace, found: Any) -> int:
    """The exit status: 1 if two programs differ; 0 for an edit, whatever it changes."""
    return 1 if arguments.other is not None and found.differs else 0
