"""Summaries and collectives as tables for the terminal, for plain text and for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from pyshardy.core.text import format_symbol
from pyshardy.report.repeated_rows import RepeatedRows
from pyshardy.report.summary import Summary, TensorRow, format_bytes, format_seconds, format_shape
from pyshardy.report.traffic import CollectiveRow, KindTotal, Traffic

_PLAIN_WIDTH = 160


def summary_tables(summary: Summary) -> RenderableType:
    """The mesh, the inputs and outputs, the totals and the stages, for a `rich` console."""
    parts: list[RenderableType] = [_heading(summary), ""]
    parts += [_tensor_table("inputs", summary.inputs), "", _tensor_table("outputs", summary.outputs), ""]
    parts.append(_totals(summary))
    if summary.stages:
        parts += ["", _stages(summary)]
    parts += [Text(f"warning: {warning}", style="yellow") for warning in summary.warnings]
    return Group(*parts)


def summary_text(summary: Summary) -> str:
    """The tables as plain text."""
    return plain_text(summary_tables(summary))


def plain_text(tables: RenderableType) -> str:
    """Tables as plain text."""
    stream = StringIO()
    Console(file=stream, width=_PLAIN_WIDTH, color_system=None).print(tables)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def traffic_tables(traffic: Traffic) -> RenderableType:
    """Every collective, and the totals per kind, for a `rich` console."""
    if not traffic.collectives:
        return Text("no collectives: no device needs anything from another")
    return Group(_collectives_table(traffic), "", kinds_table(traffic))


def traffic_text(traffic: Traffic) -> str:
    """The tables of the collectives as plain text."""
    return plain_text(traffic_tables(traffic))


def summary_html(summary: Summary) -> str:
    """The tables as HTML for a notebook cell."""
    return html(summary_tables(summary))


def html(tables: RenderableType) -> str:
    """Tables as HTML for a notebook cell; every string of the program is escaped."""
    console = Console(file=StringIO(), record=True, width=_PLAIN_WIDTH)
    console.print(tables)
    style = "font-family: monospace; line-height: 1.25; white-space: pre; overflow-x: auto"
    return console.export_html(inline_styles=True, code_format=f'<pre style="{style}">{{code}}</pre>')


def _heading(summary: Summary) -> Text:
    text = Text()
    text.append(summary.title, style="bold")
    for name, mesh in summary.meshes:
        text.append(f"\nmesh {format_symbol(name)} = {mesh}")
    if not summary.meshes:
        text.append("\nno mesh: nothing is sharded")
    return text


def _collectives_table(traffic: Traffic) -> RepeatedRows:
    table = _titled("collectives")
    for heading in ("kind", "along", "on one device"):
        table.add_column(heading, overflow="fold")
    table.add_column("bytes sent", justify="right")
    for heading in ("because of", "op", "source"):
        table.add_column(heading, overflow="fold")
    is_one_mesh = len({row.mesh for row in traffic.collectives if row.mesh is not None}) < 2
    return RepeatedRows(table, [_collective_cells(row, is_one_mesh) for row in traffic.collectives])


def _collective_cells(row: CollectiveRow, is_one_mesh: bool) -> tuple[str, ...]:
    return (
        row.kind,
        _along(row, is_one_mesh),
        f"{format_shape(row.shape_before, row.dtype)} -> {format_shape(row.shape_after, row.dtype)}",
        _sent(row),
        row.cause or "the op itself",
        row.op or "",
        "" if row.source is None else f"{row.source[0]}:{row.source[1]}",
    )


def _along(row: CollectiveRow, is_one_mesh: bool) -> str:
    if row.axes is None:
        return f"groups of {row.group_size}"
    axes = ", ".join(row.axes)
    return axes if is_one_mesh or row.mesh is None else f"{row.mesh}: {axes}"


def _sent(row: CollectiveRow) -> str:
    times = f" x {row.times}" if row.times > 1 else ""
    rounds = " per round" if row.is_lower_bound else ""
    return format_bytes(row.sent_bytes_per_device) + times + rounds + ("" if row.is_counted else ", if taken")


def kinds_table(traffic: Traffic) -> Table:
    """The totals of the collectives per kind, for a `rich` console."""
    table = _titled("totals")
    table.add_column("kind")
    table.add_column("count", justify="right")
    table.add_column("bytes sent", justify="right")
    kinds = traffic.kinds
    count = sum(total.count for total in kinds)
    for total in (*kinds, KindTotal("all", count, traffic.sent_bytes_per_device, traffic.is_lower_bound)):
        sign = "≥ " if total.is_lower_bound else ""
        table.add_row(total.kind, f"{sign}{total.count}", sign + format_bytes(total.sent_bytes_per_device))
    return table


def _titled(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", header_style="bold", show_edge=False)


def _tensor_table(title: str, rows: Sequence[TensorRow]) -> Table:
    table = _titled(title)
    table.add_column("name", overflow="fold")
    table.add_column("tensor", overflow="fold")
    table.add_column("sharding", overflow="fold")
    table.add_column("given by")
    table.add_column("on one device", overflow="fold")
    table.add_column("bytes per device", justify="right")
    for row in rows:
        is_split = row.bytes_per_device < row.bytes_total
        table.add_row(
            Text(row.name),
            Text(format_shape(row.shape, row.dtype)),
            Text(row.sharding, style="green" if is_split else "dim"),
            "propagation" if row.is_inferred else "user" if row.sharding != "replicated" else "",
            Text(format_shape(row.local_shape, row.dtype)),
            format_bytes(row.bytes_per_device),
        )
    return table


def _totals(summary: Summary) -> Table:
    table = Table(title="totals", title_justify="left", title_style="bold", show_header=True, show_edge=False)
    table.add_column("")
    for heading in ("whole", "per device as annotated", "per device after propagation"):
        table.add_column(heading, justify="right")
    for name, rows in (("inputs", summary.inputs), ("outputs", summary.outputs)):
        table.add_row(
            f"bytes of {name}",
            format_bytes(sum(row.bytes_total for row in rows)),
            format_bytes(sum(row.bytes_per_device_before for row in rows)),
            format_bytes(sum(row.bytes_per_device for row in rows)),
        )
    for name, rows in (("inputs", summary.inputs), ("outputs", summary.outputs)):
        table.add_row(
            f"{name} that are sharded",
            f"of {len(rows)}",
            str(sum(row.bytes_per_device_before < row.bytes_total for row in rows)),
            str(sum(row.bytes_per_device < row.bytes_total for row in rows)),
        )
    total = summary.tensors_sharded + summary.tensors_replicated
    table.add_row("computed tensors that are sharded", f"of {total}", "", str(summary.tensors_sharded))
    return table


def _stages(summary: Summary) -> Text:
    times = ", ".join(f"{name} {format_seconds(seconds)}" for name, seconds in summary.stages)
    return Text(f"time: {times}", style="dim")
