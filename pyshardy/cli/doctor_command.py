"""`pyshardy doctor`: finds what costs most in a program, and what mends it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pyshardy.cli.cost_command import add_hardware_options, parse_networks, parse_shape
from pyshardy.cli.files import naming
from pyshardy.cli.progress import stage

if TYPE_CHECKING:
    from pyshardy.ir.module import Module
    from pyshardy.propagation.options import PropagateOptions
    from pyshardy.report.diagnosis import Diagnosis


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that only this command has."""
    add_hardware_options(parser)
    text = "write the patches of all findings to a file, for `patch -p1`"
    parser.add_argument("--patch", metavar="FILE", help=text)


def diagnose(module: Module, arguments: argparse.Namespace, options: PropagateOptions) -> Diagnosis:
    """The findings.

    Raises:
        UsageError: The program has no mesh with several devices.
        ShardyError: The program cannot be partitioned.
    """
    from pyshardy.api.propagate import propagate
    from pyshardy.checkup.doctor import doctor

    with naming(arguments.source):
        with stage("partitioning"):
            result = propagate(module, options)
        with stage("trying what may mend it") as say:
            return doctor(
                result,
                hardware=arguments.hardware,
                networks=parse_networks(arguments.networks),
                shape=parse_shape(arguments.shape),
                collectives=arguments.collectives,
                progress=say,
            )
