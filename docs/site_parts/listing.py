"""The public API and the commands as Markdown, from what is exported and from the parsers."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterator
from typing import Any

import pyshardy
from pyshardy.cli.arguments import make_parser
from pyshardy.cli.opt_command import help_text

PARTS = (
    "frontend.interface.InterfaceTensor",
    "report.summary.Summary",
    "report.summary.TensorRow",
    "report.partition_summary.PartitionSummary",
    "costing.traffic.Traffic",
    "costing.traffic.CollectiveRow",
    "explain.explanation.Explanation",
    "explain.explanation.ValueStory",
    "explain.explanation.DimensionStory",
    "explain.explanation.AxisCame",
    "explain.explanation.StepTaken",
    "explain.explanation.StayedWhole",
    "explain.explanation.Opening",
    "explain.conflicts.Conflicts",
    "explain.conflicts.Conflict",
    "explain.collectives.CollectiveStory",
    "report.lock.LockedMesh",
    "report.lock.LockedConstraint",
    "report.lock.LockedTensor",
    "report.lock.LockedTypes",
    "report.lock.LockedCollective",
    "report.lock.LockedReplication",
    "report.lock.LockedMemory",
    "report.lock_changes.LockChange",
    "costing.collective_rows.CollectiveCost",
    "costing.peak.Peak",
    "costing.peak.LiveValue",
    "api.jit.Jitted",
)
"""Classes of what results hold, which users read and do not make."""
_WITH_INHERITED = ("Partition", "Propagation")
"""Results, whose common part is in a class that is not public."""


def api_lines() -> Iterator[str]:
    """The public names as directives of autodoc: functions, classes and errors, each in the order of the alphabet."""
    yield from exported_lines()
    said = "You read these and do not make them; where they are defined may change."
    yield from ("## What results hold", "", said, "")
    for path in PARTS:
        name = path.rpartition(".")[2]
        directive = f".. autoclass:: pyshardy.{path}"
        yield from (f"### {name}", "", "```{eval-rst}", directive, "   :members:", "", "```", "")


def exported_lines() -> Iterator[str]:
    """What `pyshardy` exports."""
    values = {name: getattr(pyshardy, name) for name in sorted(pyshardy.__all__)}
    for title, kind in (("Functions", "function"), ("Classes", "class"), ("Errors", "exception")):
        yield from (f"## {title}", "")
        for name, value in values.items():
            if kind_of(value) == kind:
                members = ["   :members:", ""] if kind == "class" else [""]
                members[1:1] = ["   :inherited-members:"] if name in _WITH_INHERITED else []
                yield from (f"### {name}", "", "```{eval-rst}", f".. auto{kind}:: pyshardy.{name}", *members, "```", "")


def kind_of(value: Any) -> str:
    """What autodoc calls it."""
    if not inspect.isclass(value):
        return "function"
    return "exception" if issubclass(value, Exception) else "class"


def command_lines() -> Iterator[str]:
    """Every command of `pyshardy` with its arguments, and the help of `pyshardy-opt`, as Markdown."""
    for name, parser in commands(make_parser()).items():
        yield from (f"## `pyshardy {name}`", "", f"{sentence(parser.description or '')}", "")
        for group in parser._action_groups:
            rows = [row_of(action) for action in group._group_actions if not isinstance(action, argparse._HelpAction)]
            if rows:
                if group.title not in ("positional arguments", "options"):
                    yield from (f"Options of {group.title}:", "")
                yield from ("| argument | what it does |", "|---|---|", *rows, "")
    yield from ("## `pyshardy-opt`", "", "```text", *help_text().rstrip().splitlines(), "```", "")


def commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of the commands, by name."""
    (found,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(found.choices)


def row_of(action: argparse.Action) -> str:
    """An argument as a row of a table: how it is written, and what its help says."""
    if not action.option_strings:
        written = f"`{in_cell(str(action.metavar or action.dest))}`"
    else:
        value = "" if action.nargs == 0 else f" {in_cell(value_of(action))}"
        written = ", ".join(f"`{option}{value}`" for option in action.option_strings)
    said = in_cell((action.help or "") % {"default": action.default, "prog": "pyshardy"})
    if action.choices and not said:
        said = f"default {action.default}"
    said = sentence(said).replace("<", "&lt;")
    return f"| {written} | {said} |"


def in_cell(text: str) -> str:
    """A text that stands in a cell of a table, where a bar would end the cell."""
    return text.replace("|", "\\|")


def value_of(action: argparse.Action) -> str:
    """What stands for the value of an option."""
    if action.choices:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return str(action.metavar or action.dest.upper())


def sentence(text: str) -> str:
    """A help text as a sentence."""
    return text and text[0].upper() + text[1:] + ("" if text.endswith((".", "?", ")")) else ".")
