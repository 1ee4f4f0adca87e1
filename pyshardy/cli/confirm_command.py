"""`pyshardy confirm`: compiles a program to the end for devices that need not be there."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pyshardy.cli.files import naming
from pyshardy.cli.numbers import seconds_argument
from pyshardy.cli.progress import stage
from pyshardy.errors import UsageError

if TYPE_CHECKING:
    from pyshardy.ir.module import Module
    from pyshardy.propagation.options import PropagateOptions
    from pyshardy.report.confirmation import Confirmation


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that only this command has."""
    text = "how long the compiler may take, in seconds (default 600)"
    parser.add_argument("--timeout", metavar="SECONDS", type=seconds_argument, default=600.0, help=text)
    text = "compile versions with 2, 5 and 7 of the repeated layers instead, and say what follows for all"
    parser.add_argument("--shortened", action="store_true", help=text)


def confirm(module: Module, arguments: argparse.Namespace, options: PropagateOptions) -> Confirmation:
    """What the compiler makes of the program.

    Raises:
        UsageError: No compiler is named.
        ShardyError: The compiler refuses the program, crashes, or takes too long.
    """
    from pyshardy.api.confirm import confirm
    from pyshardy.api.propagate import propagate

    with naming(arguments.source):
        with stage("partitioning"):
            result = propagate(module, options)
        compiler = result.propagate_options.compiler
        if not compiler:
            needed = "--compiler tpu:v5e:2x4, cuda:h100 or cpu"
            raise UsageError("reading the command line", got="no compiler", needed=needed)
        with stage(f"compiling for {compiler}, which takes seconds to minutes"):
            return confirm(result, timeout_s=arguments.timeout, shortened=arguments.shortened)
