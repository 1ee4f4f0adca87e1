"""The summary of a program: the devices, the bytes, the origin of shardings, the bytes sent, and warnings."""

from __future__ import annotations

from collections import Counter

from rich.text import Text

from pyshardy.core.text import format_bytes, format_symbol, quote
from pyshardy.costing.traffic import Traffic
from pyshardy.report.layout import Cell, Column, Table, paragraph
from pyshardy.report.printing import TableOptions
from pyshardy.report.specs import Notation, format_axis
from pyshardy.report.summary import Summary, format_seconds

_MOST_WARNINGS = 8
"""The number of warnings to show by default."""


def verdict(summary: Summary, traffic: Traffic | None, options: TableOptions, width: int) -> list[Text]:
    """The devices, the bytes before and after, the origin of shardings, the bytes sent, and warnings."""
    speaker = f"as compiled by {summary.compiler}" if summary.compiler else summary.stand_in
    lines = paragraph(speaker, width) if speaker else []
    lines += paragraph(_title(summary, options), width, style="bold")
    if summary.inputs or summary.outputs:
        lines += _totals(summary).lines(width)
    total = summary.tensors_sharded + summary.tensors_replicated
    if total and summary.meshes:
        said = f"of {total} tensors that ops compute, {summary.tensors_sharded} are sharded"
        lines += paragraph(said, width)
    if traffic is not None and traffic.collectives:
        count = sum(total.count for total in traffic.kinds)
        sign = "at least " if traffic.is_lower_bound else ""
        sent = format_bytes(traffic.sent_bytes_per_device)
        lines += paragraph(f"every device sends {sign}{sent} in {sign}{count} collective{'s' * (count != 1)}", width)
    if summary.replicated:
        lines += paragraph(summary.replicated, width, style="yellow")
    return lines + _warnings(summary, options, width)


def _title(summary: Summary, options: TableOptions) -> str:
    if not summary.meshes:
        return f"{summary.title}: no mesh, nothing is sharded"
    count = summary.device_count
    meshes = []
    for name, mesh in summary.meshes:
        if options.notation is Notation.SDY:
            meshes.append(f"mesh {format_symbol(name)} = {mesh}")
        else:
            axes = ", ".join(f"{format_axis(quote(axis))}={size}" for axis, size in mesh.axes)
            order = ", devices in an order of their own" if mesh.device_ids else ""
            meshes.append((f"{format_symbol(name)} " if len(summary.meshes) > 1 else "") + axes + order)
    return f"{summary.title} on {count} device{'s' * (count != 1)}: {'; '.join(meshes)}"


def _totals(summary: Summary) -> Table:
    headings = ("", "unsharded", "annotated", "propagated", "sharded", "by user", "by propagation")
    rows = []
    for name, tensors in (("inputs", summary.inputs), ("outputs", summary.outputs)):
        givers = Counter(row.given_by for row in tensors if row.is_split)
        counts = f"{givers.total()} of {len(tensors)}", str(givers["user"]), str(givers["propagation"])
        before = sum(row.bytes_per_device_before for row in tensors)
        sizes = sum(row.bytes_total for row in tensors), before, sum(row.bytes_per_device for row in tensors)
        rows.append(tuple(map(Cell, (name, *map(format_bytes, sizes), *counts))))
    title = "bytes per device, and who shards"
    return Table(title, tuple(Column(heading, at and at - 1, at > 0) for at, heading in enumerate(headings)), rows)


def _warnings(summary: Summary, options: TableOptions, width: int) -> list[Text]:
    counts = Counter(summary.warnings)
    most = len(counts) if options.unfold or len(counts) == _MOST_WARNINGS + 1 else _MOST_WARNINGS
    lines: list[Text] = []
    for warning, count in list(counts.items())[:most]:
        times = f" (×{count})" if count > 1 else ""
        lines += paragraph(f"warning: {warning}{times}", width, style="yellow")
    if len(counts) > most:
        lines += paragraph(f"and {len(counts) - most} more warnings: --all shows them", width, style="yellow")
    return lines


def stage_times(summary: Summary, options: TableOptions, width: int) -> list[Text]:
    """The time of every step, if requested."""
    if not (options.times and summary.stages):
        return []
    times = ", ".join(f"{name} {format_seconds(seconds)}" for name, seconds in summary.stages)
    return [Text(), *paragraph(f"time: {times}", width, style="dim")]
