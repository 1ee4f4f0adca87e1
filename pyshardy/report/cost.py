"""Estimated cost as tables for the terminal, for plain text and for notebooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.text import Text

from pyshardy.core.folding import fold_names
from pyshardy.core.text import format_bytes, format_shape
from pyshardy.costing.collective_rows import CollectiveCost
from pyshardy.costing.estimate import Estimate
from pyshardy.costing.peak import LiveValue
from pyshardy.costing.places import By, PlaceCost
from pyshardy.report.collective_table import cause_cell, scope_cell
from pyshardy.report.layout import Cell, Column, Table, paragraph
from pyshardy.report.printing import Page
from pyshardy.report.summary import format_seconds
from pyshardy.source.places import SourcePlace, format_place

_MOST_ROWS = 24
_BARS = " ▁▂▃▄▅▆▇█"
_CURVE_WIDTH = 72
_FIGURES = Column(""), Column("estimated", is_number=True)
_TIMES = Column("", wraps=True), _FIGURES[1]
_MOST_UNPRICED = 4
"""The kinds of ops without a price that are named."""
_UNPRICED_NOTE = (
    "note: of ops without a price only what they read and write is counted; a kernel of Pallas gets a price by "
    "pallas_call(..., cost_estimate=pl.CostEstimate(...))"
)
_Group = tuple[str, Sequence[LiveValue]]
"""Like values of several layers, with their common name."""


def cost_tables(found: Estimate, speaker: str = "", tokens: tuple[str, float] | None = None) -> Page:
    """The time, collectives and memory of an estimate, in the width in which they are printed.

    Args:
        found: The estimate.
        speaker: Whose program was estimated, below the first line.
        tokens: The input that has the tokens of a run, and those that all devices together take in a second.
    """

    def lines(width: int) -> list[Text]:
        shown = [*_heading(found, speaker, width), Text(), *_times(found, tokens).lines(width), Text()]
        if found.collectives:
            shown += [*_collectives(found).lines(width), Text()]
        shown += _memory(found, width)
        if found.memory.live:
            shown += [Text(), *_live(found).lines(width)]
        for note in found.notes:
            shown += paragraph(f"note: {note}", width, "dim")
        if found.unknown_ops:
            shown += paragraph(_UNPRICED_NOTE, width, "yellow")
        return shown

    return Page(lines)


def cost_figures(found: Estimate) -> dict[str, str]:
    """The estimated time and memory of a run, as texts, for the overview of a page."""
    return {
        f"a run on {found.hardware}, estimated{without_unpriced(found.unknown_ops)}": format_seconds(
            found.step_seconds
        ),
        "of that, nothing but collectives run": format_seconds(found.exposed_seconds),
        f"memory of a {found.hardware}, {'enough' if found.fits else 'too little'}": format_bytes(
            int(found.memory_limit_bytes)
        ),
    }


def without_unpriced(ops: Sequence[tuple[str, int]]) -> str:
    """What a step's time leaves out, to stand after the word "step"; nothing if all ops have a price.

    Args:
        ops: The names of ops without a price, and how often they run.

    >>> without_unpriced([("my_kernel", 2), ("topk", 1)])
    ', without 2 calls of my_kernel and 1 of topk, which have no price'
    >>> without_unpriced([])
    ''
    """
    said = [f"{count} of {name}" for name, count in ops[:_MOST_UNPRICED]]
    if not said:
        return ""
    said[0] = f"{ops[0][1]} call{'s' * (ops[0][1] != 1)} of {ops[0][0]}"
    rest = sum(count for _, count in ops[_MOST_UNPRICED:])
    said += [f"{rest} of others"] if rest else []
    listed = " and ".join(filter(None, (", ".join(said[:-1]), said[-1])))
    have = "has" if sum(count for _, count in ops) == 1 else "have"
    return f", without {listed}, which {have} no price"


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


def _heading(found: Estimate, speaker: str, width: int) -> list[Text]:
    assumption = f"all figures are estimates, none is measured; what matters most: {found.assumption}"
    lines = [
        *_verdict(found, width),
        *paragraph(f"estimated cost on {found.devices} x {found.hardware}", width, "bold"),
    ]
    lines += paragraph(speaker, width) if speaker else []
    lines += paragraph(assumption, width)
    for axis, where in found.topology:
        lines += paragraph(f"axis {axis} over {where}", width)
    return lines


def place_tables(by: By, found: Sequence[PlaceCost]) -> Page:
    """The time by scope or line, in the width in which it is printed."""
    rest = found[_MOST_ROWS:]
    last = (f"{len(rest)} more", format_duration(sum(row.seconds for row in rest))) if rest else ()
    columns = _place_columns(by, sum(row.seconds for row in found))
    title = f"time by {by.value}, without overlap (estimated)"
    return Page(lambda width: _table_of(title, columns, found[:_MOST_ROWS], last).lines(width))


def _place_columns(by: By, whole: float) -> tuple[tuple[Column, Callable[[PlaceCost], Cell]], ...]:
    """The columns of the time by scope or line, with the functions that give their cells."""
    return (
        (Column(by.value), _scope_or_line),
        (Column("time", is_number=True), lambda row: Cell(format_duration(row.seconds))),
        (Column("of all", is_number=True), lambda row: Cell(f"{row.seconds / whole:.0%}")),
        (Column("kernels", is_number=True, rank=1), lambda row: Cell(format_duration(row.kernel_seconds))),
        (Column("collectives", is_number=True, rank=1), lambda row: Cell(format_duration(row.collective_seconds))),
        (Column("FLOPs", is_number=True, rank=2), lambda row: Cell(format_count(row.flops))),
        (Column("read and written", is_number=True, rank=2), lambda row: Cell(format_bytes(round(row.bytes)))),
        (Column("sent", is_number=True, rank=2), lambda row: Cell(format_bytes(round(row.sent_bytes)))),
        (Column("at the peak", is_number=True, rank=1), lambda row: Cell(format_bytes(row.peak_bytes))),
    )


def _scope_or_line(row: PlaceCost) -> Cell:
    if row.source is not None:
        return _place(row.source)
    return Cell(row.scope or "elsewhere")


def _verdict(found: Estimate, width: int) -> list[Text]:
    """Says that the program does not fit, or may not; empty if it fits."""
    if found.fits and not found.is_close:
        return []
    needed, limit = (format_bytes(round(size)) for size in (found.memory.bytes, found.memory_limit_bytes))
    if found.is_close:
        said = f"too close to call: about {needed} of {limit} per device, {_known_range(found)}; "
        said += "`pyshardy confirm` asks the compiler"
        return paragraph(said, width, "bold yellow")
    return paragraph(f"does not fit: about {needed} of {limit} per device, {_known_range(found)}", width, "bold red")


def _known_range(found: Estimate) -> str:
    """What most steps with this estimate need, and who says so."""
    low, high = map(format_bytes, found.memory_error.range(found.memory.bytes))
    return f"{low} to {high} in nine of ten steps compiled by {found.memory_error.compiler}"


def _times(found: Estimate, tokens: tuple[str, float] | None) -> Table:
    rows = [
        ("step" + without_unpriced(found.unknown_ops), format_duration(found.step_seconds)),
        ("  without overlap", format_duration(found.serial_seconds)),
    ]
    if tokens is not None:
        name, rate = tokens
        rows += [
            (f"tokens of `{name}` per second", format_count(rate)),
            ("  per device", format_count(rate / found.devices)),
        ]
    rows += [
        ("kernels", format_duration(found.compute_seconds)),
        *((f"  spent on {name}", format_duration(seconds)) for name, seconds in found.compute_by_bound),
        ("collectives", format_duration(found.communication_seconds)),
    ]
    if found.host_bytes:
        rows.append((f"{format_bytes(found.host_bytes)} to and from the host", format_duration(found.host_seconds)))
    rows.append(("  not hidden behind kernels", format_duration(found.exposed_seconds)))
    if found.waiting_seconds:
        rows.append(("  waiting for the slowest device", format_duration(found.waiting_seconds)))
    rows += [
        ("FLOPs per device", format_count(found.flops_per_device)),
        ("  of the peak of products", f"{found.utilization:.1%}"),
        ("  model FLOPs utilization (MFU)", f"{found.model_utilization:.1%}"),
        ("read and written per device", format_bytes(round(found.bytes_per_device))),
    ]
    return _table("time per step (estimated)", _TIMES, rows)


def _table(title: str, columns: tuple[Column, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    return Table(title, columns, [tuple(map(Cell, row)) for row in rows])


def _collectives(found: Estimate) -> Table:
    rest = found.collectives[_MOST_ROWS:]
    last: tuple[str, ...] = ()
    if rest:
        sent = sum(row.sent_bytes_per_device for row in rest)
        seconds = sum(row.seconds for row in rest)
        times = _times_of(sum(row.count for row in rest))
        last = f"{len(rest)} more", times, format_bytes(sent), format_duration(seconds)
    title = f"collectives (estimated by the {found.collective_model} model)"
    return _table_of(title, _COLLECTIVES, found.collectives[:_MOST_ROWS], last)


def _table_of(
    title: str, columns: Sequence[tuple[Column, Callable[[Any], Cell]]], rows: Sequence[Any], last: Sequence[str]
) -> Table:
    """A table whose columns come with the functions that give their cells.

    Args:
        title: The title.
        columns: Each column, with the function that gives its cell for a row.
        rows: The rows.
        last: The cells of a last row for what is left out; no row if that is nothing.
    """
    cells = [tuple(cell(row) for _, cell in columns) for row in rows]
    if last:
        cells.append(tuple(map(Cell, (*last, *[""] * (len(columns) - len(last))))))
    return Table(title, tuple(column for column, _ in columns), cells)


def _times_of(count: float) -> str:
    return f"×{count:.0f}" if count > 1 else ""


def _place(place: SourcePlace | None) -> Cell:
    return Cell(format_place(place), short=format_place(place, only_name=True))


def _memory(found: Estimate, width: int) -> list[Text]:
    memory = found.memory
    limit = format_bytes(round(found.memory_limit_bytes))
    verdict, style = (f"fits in {limit}", "green") if found.fits else (f"does not fit in {limit}", "red")
    if found.is_close:
        verdict, style = f"{verdict}, which is too close to call", "yellow"
    rows = [("peak", format_bytes(memory.bytes))]
    rows += [(f"  {name}", format_bytes(count)) for name, count in memory.categories]
    lines = [
        *_table("peak memory per device (estimated)", _FIGURES, rows).lines(width),
        *paragraph(f"the peak {verdict}; it is at {memory.at:.0%} of the program", width, style),
    ]
    if not memory.bytes:
        return lines
    lines += paragraph(f"known error: {_known_range(found)} (docs/cost.md)", width)
    return [
        *lines,
        *paragraph(f"memory over the program, from 0 to {format_bytes(memory.bytes)} (estimated):", width),
        Text(curve(memory.curve, min(width, _CURVE_WIDTH))),
    ]


def curve(points: tuple[int, ...], width: int = _CURVE_WIDTH) -> str:
    """Memory over the program as a row of bars from 0 to the peak.

    Args:
        points: Bytes, one after the other.
        width: The most bars.

    >>> curve((1, 4, 8))
    '▁▄█'
    """
    step = -(-len(points) // width)
    shown = [max(points[start : start + step]) for start in range(0, len(points), step)] if points else []
    most = max(shown, default=0)
    return "".join(_BARS[round(8 * point / most)] if most else _BARS[0] for point in shown)


def _live(found: Estimate) -> Table:
    """What is alive at the peak, with like tensors in one row, of several layers too."""
    like: dict[tuple[object, ...], list[LiveValue]] = {}
    for one in found.memory.live:
        like.setdefault((one.name, one.category, one.shape, one.dtype, one.source), []).append(one)
    equal = list(like.values())
    groups = [
        (folded.name, [one for member in folded.members for one in equal[member]])
        for folded in fold_names((ones[0].name, key[1:]) for key, ones in like.items())
    ]
    groups.sort(key=lambda group: -sum(one.bytes for one in group[1]))
    rest = [one for _, ones in groups[_MOST_ROWS:] for one in ones]
    last = (f"{len(rest)} more", "", format_bytes(_bytes_of(rest))) if rest else ()
    return _table_of("alive at the peak (estimated)", _LIVE, groups[:_MOST_ROWS], last)


def _bytes_of(ones: Sequence[LiveValue]) -> int:
    return sum(one.bytes for one in ones)


def _shape_of(one: LiveValue) -> str:
    return "" if one.shape is None else format_shape(one.shape, one.dtype)


_COLLECTIVES: tuple[tuple[Column, Callable[[CollectiveCost], Cell]], ...] = (
    (Column("kind"), lambda row: Cell(row.kind)),
    (Column("", total=_times_of), lambda row: Cell(_times_of(row.count), amount=row.count)),
    (
        Column("bytes sent", is_number=True, total=lambda size: format_bytes(round(size))),
        lambda row: Cell(format_bytes(row.sent_bytes_per_device), amount=row.sent_bytes_per_device),
    ),
    (
        Column("time", is_number=True, total=format_duration),
        lambda row: Cell(format_duration(row.seconds), amount=row.seconds),
    ),
    (Column("along", rank=1), lambda row: Cell(row.axes or "")),
    (Column("over", rank=3), lambda row: Cell(row.networks)),
    (Column("because of", rank=4, wraps=True), lambda row: cause_cell(row.cause)),
    (Column("source", rank=2), lambda row: _place(row.source)),
    (Column("in", rank=5), lambda row: scope_cell(row.ops)),
)
_LIVE: tuple[tuple[Column, Callable[[_Group], Cell]], ...] = (
    (Column("name"), lambda group: Cell(group[0])),
    (Column(""), lambda group: Cell(_times_of(len(group[1])))),
    (Column("bytes", is_number=True), lambda group: Cell(format_bytes(_bytes_of(group[1])))),
    (Column("category", rank=1), lambda group: Cell(group[1][0].category)),
    (Column("on one device", rank=3), lambda group: Cell(_shape_of(group[1][0]))),
    (Column("source", rank=2), lambda group: _place(group[1][0].source)),
)
