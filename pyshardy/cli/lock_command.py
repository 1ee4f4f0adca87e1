"""`pyshardy lock`: writes what is to be reviewed about a program."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pyshardy.cli.files import naming
from pyshardy.cli.progress import stage

if TYPE_CHECKING:
    from pyshardy.ir.module import Module
    from pyshardy.propagation.options import PropagateOptions
    from pyshardy.report.budgets import Budgets
    from pyshardy.report.lock import Lock


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that only this command has."""
    text = "where to write it (default: standard output); of a lock that is there, budgets, compiler and chip are kept"
    parser.add_argument("-o", "--output", metavar="FILE", help=text)
    add_budgets(parser)


def add_budgets(parser: argparse.ArgumentParser) -> None:
    """The options of budgets, and the chip of the estimated memory."""
    text = "the chip that the peak memory is estimated for (default: that of the lock or of --compiler, or v5p)"
    parser.add_argument("--hardware", metavar="CHIP|FILE", help=text)
    group = parser.add_argument_group("budgets")
    text = "what a device may hold at most, like 14GiB, by the estimate of pyshardy cost"
    group.add_argument("--max-memory", metavar="BYTES", default="", help=text)
    text = "what a device may send per run at most, like 2GB"
    group.add_argument("--max-bytes", metavar="BYTES", default="", help=text)
    text = "allow no tensor that the compiler gathers whole on every device"
    group.add_argument("--no-replication", action="store_true", help=text)
    text = "allow no such collective, like 'all_gather over model in decoder/*' (may be repeated)"
    group.add_argument("--no", action="append", metavar="COLLECTIVE", default=[], help=text)


def budgets_of(arguments: argparse.Namespace) -> Budgets:
    """The budgets of a command line.

    Raises:
        UsageError: A text is not a number of bytes, or does not say which collectives.
    """
    from pyshardy.report.budgets import Budgets

    given = arguments.max_memory, arguments.max_bytes, arguments.no_replication, tuple(arguments.no)
    return Budgets(*given)


def locks(
    load: Callable[[], Module], arguments: argparse.Namespace, options: PropagateOptions
) -> tuple[Lock, tuple[str, ...]]:
    """Write the lock of a program to the file of a command line, if it names one.

    Args:
        load: Reads the program.
        arguments: The command line: `source`, `output`, `hardware` and the budgets.
        options: How to propagate; without a compiler, that of a lock that is there is asked.

    Returns:
        The lock, and a sentence for every budget that the program breaks.

    Raises:
        UsageError: The file is there and holds something else than a lock.
    """
    from pyshardy.api.lock import check, known_lock, lock, write_lock
    from pyshardy.api.propagate import propagate

    budgets, path = budgets_of(arguments), None if arguments.output == "-" else arguments.output
    known = None if path is None else known_lock(path)
    if known is not None and options.compiler is None:
        options = replace(options, compiler=known.compiler)
    module = load()
    with naming(arguments.source):
        with stage("propagating"):
            result = propagate(module, options)
        with stage("partitioning"):
            if path is None:
                found = lock(result, hardware=arguments.hardware, budgets=budgets)
            else:
                found = write_lock(result, path, hardware=arguments.hardware, budgets=budgets)
            broken = check(result, found).broken if found.budgets else ()
    return found, tuple(f"a budget is broken: {sentence}" for sentence in broken)
