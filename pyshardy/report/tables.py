"""Summaries and collectives as tables for the terminal, for plain text and for notebooks.

The summary comes first: the devices, the bytes, the origin of shardings, the bytes sent, and warnings. Tables of every
input, output and collective follow.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from pyshardy.core.folding import fold_names
from pyshardy.costing.traffic import CollectiveGroup, Traffic
from pyshardy.report.collective_table import collectives_table, kinds_table
from pyshardy.report.given_by import ShortNames
from pyshardy.report.layout import Table, paragraph
from pyshardy.report.printing import DEFAULTS, Page, TableOptions
from pyshardy.report.specs import format_axis
from pyshardy.report.summary import Summary
from pyshardy.report.tensor_table import tensor_table
from pyshardy.report.verdict import stage_times, verdict

_MOST_GROUPS = 3
"""The number of the largest collectives to show in a summary."""
_EVEN = "inputs and outputs have even shards"
_MOST_NOTES = 4
"""The number of notes on dimensions that axes do not divide to show by default."""
_FEWEST_GROUPS = 2
"""The number if there is little room."""


def summary_tables(summary: Summary, options: TableOptions = DEFAULTS) -> Page:
    """The summary, the inputs and the outputs."""

    def lines(width: int) -> list[Text]:
        found = verdict(summary, None, options, width)
        shorten = ShortNames(summary)
        for title, rows in (("inputs", summary.inputs), ("outputs", summary.outputs)):
            if rows:
                table = tensor_table(title, rows, options, len(summary.meshes) > 1, shorten)
                found += [Text(), *table.lines(width)]
        return found + _undivided(summary, options, width) + stage_times(summary, options, width)

    return Page(lines)


def _undivided(summary: Summary, options: TableOptions, width: int) -> list[Text]:
    """The axes that inputs and outputs lack because they do not divide them. Annotated ones have a warning instead."""
    rows = [row for row in (*summary.inputs, *summary.outputs) if row.bytes_per_device <= row.bytes_per_device_before]
    lost = [(row.name, (one, row.shape[one.dimension])) for row in rows for one in row.undivided]
    folded = fold_names(lost)
    most = len(folded) if options.unfold or len(folded) == _MOST_NOTES + 1 else _MOST_NOTES
    found: list[Text] = []
    for name, members in folded[:most]:
        (dimension, wanted, kept), size = lost[members[0]][1]
        is_split = f"split only along {_axes(kept, options)}" if kept else "whole"
        because = f"its {size} elements do not divide evenly by {_axes(wanted, options)}, and {_EVEN}"
        found += paragraph(f"note: dimension {dimension} of {name} is {is_split}: {because}", width, style="yellow")
    if len(folded) > most:
        found += paragraph(f"and {len(folded) - most} more such notes: --all shows them", width, style="yellow")
    return [Text(), *found] if found else []


def _axes(axes: Sequence[str], options: TableOptions) -> str:
    return " and ".join(format_axis(axis, options.notation) for axis in axes)


def run_tables(summary: Summary, traffic: Traffic | None, more: str, options: TableOptions = DEFAULTS) -> Page:
    """The summary, the largest collectives, and the sharded inputs as far as there is room.

    Args:
        summary: The program.
        traffic: The collectives, if known.
        more: The command that shows all of it.
        options: The display options.
    """
    if options.unfold:
        return Page(lambda width: _all_of_a_run(summary, traffic, options, width))

    def lines(width: int) -> list[Text]:
        found = verdict(summary, traffic, options, width)
        if traffic is not None and traffic.collectives:
            found += [Text(), *_largest(traffic, options).lines(width)]
        rows = [row for row in summary.inputs if row.is_split]
        table = tensor_table("inputs that are sharded", rows, options, len(summary.meshes) > 1, ShortNames(summary))
        if rows and options.most_rows != 0:
            found += [Text(), *_cut(table, options.most_rows, more, width), Text()]
        return found + stage_times(summary, options, width)

    return Page(lines)


def partition_tables(summary: Summary, traffic: Traffic, options: TableOptions = DEFAULTS) -> Page:
    """The summary and the collectives."""
    return Page(
        lambda width: [
            *verdict(summary, traffic, options, width), Text(), *traffic_tables(traffic, options).lines(width),
            *stage_times(summary, options, width),
        ]
    )  # fmt: skip


def traffic_tables(traffic: Traffic, options: TableOptions = DEFAULTS) -> Page:
    """The collectives, with equal ones folded and the largest first, and the totals per kind."""
    if not traffic.collectives:
        return Page(lambda width: paragraph("no collectives: no device needs anything from another", width))
    groups = traffic.groups
    if options.unfold:
        groups = tuple(CollectiveGroup((row,)) for row in traffic.collectives)
    table = collectives_table("collectives", groups, traffic, options)
    return Page(lambda width: [*table.lines(width), Text(), *kinds_table(traffic).lines(width)])


def _cut(table: Table, most: int | None, more: str, width: int) -> list[Text]:
    """The first rows of a table, and the number of remaining rows."""
    left = 0 if most is None else len(table.rows) - most
    if left < 2:  # a message would take as much room as the row
        return table.lines(width)
    shown = Table(table.title, table.columns, table.rows[:most])
    return [*shown.lines(width), *paragraph(f"and {left} more rows: {more}", width, style="dim")]


def _largest(traffic: Traffic, options: TableOptions) -> Table:
    groups = traffic.groups[: _MOST_GROUPS if options.most_rows != 0 else _FEWEST_GROUPS]
    return collectives_table("largest collectives", groups, traffic, options)


def _all_of_a_run(summary: Summary, traffic: Traffic | None, options: TableOptions, width: int) -> list[Text]:
    lines = summary_tables(summary, options).lines(width)
    if traffic is not None:
        lines += [Text(), *traffic_tables(traffic, options).lines(width)]
    return lines
