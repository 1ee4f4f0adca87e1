"""Estimated cost as tables for the terminal, for plain text and for notebooks."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pyshardy.costing.estimate import Estimate
from pyshardy.report.printing import Page, rendered
from pyshardy.report.summary import format_bytes, format_shape

_MOST_ROWS = 24
_BARS = " ▁▂▃▄▅▆▇█"
_CURVE_WIDTH = 72


def cost_tables(found: Estimate) -> Page:
    """The time, collectives and memory of an estimate, for a `rich` console."""
    parts: list[RenderableType] = [_heading(found), "", _times(found), ""]
    if found.collectives:
        parts += [_collectives(found), ""]
    parts += [_memory(found), "", _live(found)]
    parts += [Text(f"note: {note}", style="dim") for note in found.notes]
    if found.unknown_ops:
        names = ", ".join(f"{name} x {count}" if count > 1 else name for name, count in found.unknown_ops)
        parts.append(Text(f"note: what these compute is not known and not counted: {names}", style="yellow"))
    return rendered(Group(*parts))


def format_duration(seconds: float) -> str:
    """A duration in a unit that keeps the number short.

    >>> format_duration(3.4e-6), format_duration(0.0123), format_duration(2.5)
    ('3.4 us', '12.3 ms', '2.50 s')
    """
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def format_count(number: float) -> str:
    """A large number in a short form.

    >>> format_count(3.44e10), format_count(12)
    ('34.4 G', '12')
    """
    for power, letter in ((15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if number >= 10**power:
            return f"{number / 10**power:.1f} {letter}"
    return f"{number:.0f}"


def _heading(found: Estimate) -> Text:
    text = Text()
    text.append(f"estimated cost on {found.devices} x {found.hardware}", style="bold")
    text.append("\nall figures are estimates, none is measured; what matters most: " + found.assumption)
    for axis, where in found.topology:
        text.append(f"\naxis {axis} over {where}")
    return text


def _titled(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", header_style="bold", show_edge=False)


def _times(found: Estimate) -> Table:
    table = _titled("time per step (estimated)")
    table.add_column("")
    table.add_column("estimated", justify="right")
    table.add_row("step", format_duration(found.step_seconds))
    table.add_row("  without overlap", format_duration(found.serial_seconds))
    table.add_row("kernels", format_duration(found.compute_seconds))
    for name, seconds in found.compute_by_bound:
        table.add_row(f"  spent on {name}", format_duration(seconds))
    table.add_row("collectives", format_duration(found.communication_seconds))
    table.add_row("  not hidden behind kernels", format_duration(found.exposed_seconds))
    if found.waiting_seconds:
        table.add_row("  waiting for the slowest device", format_duration(found.waiting_seconds))
    table.add_row("FLOPs per device", format_count(found.flops_per_device))
    table.add_row("  of the peak of products", f"{found.utilization:.1%}")
    table.add_row("read and written per device", format_bytes(round(found.bytes_per_device)))
    return table


def _collectives(found: Estimate) -> Table:
    table = _titled(f"collectives (estimated by the {found.collective_model} model)")
    table.add_column("kind", no_wrap=True)
    for heading in ("along", "over"):
        table.add_column(heading, overflow="fold")
    for heading in ("count", "bytes sent", "time"):
        table.add_column(heading, justify="right")
    for heading in ("because of", "source"):
        table.add_column(heading, overflow="fold")
    for row in found.collectives[:_MOST_ROWS]:
        source = "" if row.source is None else f"{row.source[0]}:{row.source[1]}"
        table.add_row(
            row.kind,
            row.axes or "",
            row.networks,
            str(row.count),
            format_bytes(row.sent_bytes_per_device),
            format_duration(row.seconds),
            row.cause or "the op itself",
            source,
        )
    rest = found.collectives[_MOST_ROWS:]
    if rest:
        sent = sum(row.sent_bytes_per_device for row in rest)
        seconds = sum(row.seconds for row in rest)
        count = sum(row.count for row in rest)
        table.add_row(f"{len(rest)} more", "", "", str(count), format_bytes(sent), format_duration(seconds), "", "")
    return table


def _memory(found: Estimate) -> RenderableType:
    memory = found.memory
    limit = format_bytes(round(found.memory_limit_bytes))
    verdict = f"fits in {limit}" if found.fits else f"does not fit in {limit}"
    table = _titled("peak memory per device (estimated)")
    table.add_column("")
    table.add_column("estimated", justify="right")
    table.add_row("peak", format_bytes(memory.bytes), style="" if found.fits else "red")
    for name, count in memory.categories:
        table.add_row(f"  {name}", format_bytes(count))
    if memory.minimized_bytes is not None:
        table.add_row("in an order chosen for memory", format_bytes(memory.minimized_bytes))
    at = f"the peak {verdict}; it is at {memory.at:.0%} of the program"
    over = f"memory over the program, from 0 to {format_bytes(memory.bytes)} (estimated):"
    return Group(table, Text(at, style="green" if found.fits else "red"), Text(over), Text(curve(memory.curve)))


def curve(points: tuple[int, ...]) -> str:
    """Memory over the program as a row of bars from 0 to the peak.

    >>> curve((1, 4, 8))
    '▁▄█'
    """
    step = -(-len(points) // _CURVE_WIDTH)
    shown = [max(points[start : start + step]) for start in range(0, len(points), step)] if points else []
    most = max(shown, default=0)
    return "".join(_BARS[round(8 * point / most)] if most else _BARS[0] for point in shown)


def _live(found: Estimate) -> Table:
    table = _titled("alive at the peak (estimated)")
    for heading in ("name", "category", "on one device"):
        table.add_column(heading, overflow="fold")
    table.add_column("bytes", justify="right")
    table.add_column("source", overflow="fold")
    for one in found.memory.live[:_MOST_ROWS]:
        shape = "" if one.shape is None else format_shape(one.shape, one.dtype)
        source = "" if one.source is None else f"{one.source[0]}:{one.source[1]}"
        table.add_row(Text(one.name), one.category, Text(shape), format_bytes(one.bytes), source)
    rest = found.memory.live[_MOST_ROWS:]
    if rest:
        table.add_row(f"{len(rest)} more", "", "", format_bytes(sum(one.bytes for one in rest)), "")
    return table
