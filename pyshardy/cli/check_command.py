"""`pyshardy check`: compares a program with what `pyshardy lock` wrote."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pyshardy.cli.files import naming
from pyshardy.cli.lock_command import add_budgets, budgets_of
from pyshardy.cli.progress import stage
from pyshardy.errors import UsageError

if TYPE_CHECKING:
    from pyshardy.ir.module import Module
    from pyshardy.propagation.options import PropagateOptions
    from pyshardy.report.lock_difference import LockDifference


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `pyshardy check`."""
    text = "what pyshardy lock wrote, or a golden file of MaxText (named_shardings.json)"
    parser.add_argument("other", metavar="LOCK", nargs="?", help=text)
    parser.usage = "%(prog)s [-h] FILE|example LOCK [options and sizes of the example]"
    parser.add_argument("--all", action="store_true", help="show every row that differs")
    add_budgets(parser)


def checks(load: Callable[[], Module], arguments: argparse.Namespace, options: PropagateOptions) -> LockDifference:
    """The comparison of a program with a lock.

    Args:
        load: Reads the program.
        arguments: The command line: `source`, `other`, `hardware` and the budgets.
        options: How to propagate; without a compiler, that of the lock is asked.

    Raises:
        UsageError: There is no lock, or it cannot be read.
    """
    from pyshardy.api.lock import check
    from pyshardy.api.propagate import propagate
    from pyshardy.report.lock_files import load_lock

    if arguments.other is None:
        needed = "the lock behind the program: pyshardy check FILE LOCK"
        raise UsageError("reading the command line", got="no lock", needed=needed)
    budgets, lock = budgets_of(arguments), load_lock(arguments.other)
    if options.compiler is None:
        options = replace(options, compiler=lock.compiler)
    module = load()
    with naming(arguments.source):
        with stage("propagating"):
            result = propagate(module, options)
        with stage("partitioning and comparing"):
            found = check(result, lock, hardware=arguments.hardware, budgets=budgets, name=arguments.source)
    return replace(found, lock_name=arguments.other)
