"""Summaries and collectives as tables for the terminal, for plain text and for notebooks.

The verdict comes first: the devices, the bytes, who shards what, what is sent, and warnings. Tables of every input,
output and collective follow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Protocol

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from pyshardy.core.text import format_symbol, quote
from pyshardy.report.folding import fold
from pyshardy.report.layout import Cell, Column, Table, paragraph
from pyshardy.report.places import format_place
from pyshardy.report.specs import Notation, format_axis, format_sharding
from pyshardy.report.summary import Summary, TensorRow, format_bytes, format_seconds, format_shape
from pyshardy.report.traffic import CollectiveGroup, CollectiveRow, KindTotal, Traffic

PLAIN_WIDTH = 120
"""The width of tables that are for no terminal."""
_MOST_WARNINGS = 8
"""So many warnings are shown unless all is to be shown."""
_MOST_GROUPS = 3
"""So many of the largest collectives are part of a verdict."""
_MOST_ORIGINS = 2
"""So many annotations are named that a sharding comes from."""
_FEWEST_GROUPS = 2
"""So many where there is little room."""

_TENSOR_COLUMNS = (
    Column("name"),
    Column(""),
    Column("tensor", rank=3, is_extra=True),
    Column("sharding"),
    Column("given by", rank=1),
    Column("on one device", rank=4),
    Column("bytes per device", rank=2, is_number=True),
)
_Collectives = tuple[Column, Callable[[CollectiveGroup], Cell]]
_KIND_COLUMNS = Column("kind"), Column("count", is_number=True), Column("bytes sent", is_number=True)


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What tables show.

    Attributes:
        notation: How shardings are written.
        unfold: Whether every tensor, collective and warning has a row of its own.
        times: Whether to say how long every step took.
        most_rows: How many inputs to show; all if None.
    """

    notation: Notation = Notation.SPEC
    unfold: bool = False
    times: bool = False
    most_rows: int | None = None


DEFAULTS = TableOptions()


class Page:
    """Lines that are made for a width when they are printed, by `rich` or as plain text.

    Args:
        make: The lines for a width.
    """

    def __init__(self, make: Callable[[int], list[Text]]) -> None:
        self.lines = make

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.lines(options.max_width):
            line.no_wrap, line.overflow = True, "ignore"
            yield line


def rendered(parts: RenderableType) -> Page:
    """A page of anything that `rich` can print, such as its own tables."""

    def lines(width: int) -> list[Text]:
        console = Console(file=StringIO(), width=width, force_jupyter=False)
        rows = console.render_lines(parts, pad=False)
        return [Text.assemble(*[(part.text, part.style or "") for part in row]) for row in rows]

    return Page(lines)


def summary_tables(summary: Summary, options: TableOptions = DEFAULTS) -> Page:
    """The verdict, the inputs and the outputs."""

    def lines(width: int) -> list[Text]:
        found = _headline(summary, None, options, width)
        for title, rows in (("inputs", summary.inputs), ("outputs", summary.outputs)):
            if rows:
                found += [Text(), *_tensor_table(title, rows, options, len(summary.meshes) > 1).lines(width)]
        return found + _times(summary, options, width)

    return Page(lines)


def run_tables(summary: Summary, traffic: Traffic | None, more: str, options: TableOptions = DEFAULTS) -> Page:
    """The verdict, the largest collectives, and the inputs that are sharded, if and as far as there is room.

    Args:
        summary: The program.
        traffic: What its devices send, if that is known.
        more: The command that shows all of it.
        options: What to show.
    """
    if options.unfold:
        return Page(lambda width: _all_of_a_run(summary, traffic, options, width))

    def lines(width: int) -> list[Text]:
        found = _headline(summary, traffic, options, width)
        if traffic is not None and traffic.collectives:
            found += [Text(), *_largest(traffic, options).lines(width)]
        rows = [row for row in summary.inputs if row.is_split]
        table = _tensor_table("inputs that are sharded", rows, options, len(summary.meshes) > 1)
        if rows and options.most_rows != 0:
            found += [Text(), *_cut(table, options.most_rows, more, width), Text()]
        return found + _times(summary, options, width)

    return Page(lines)


def partition_tables(summary: Summary, traffic: Traffic, options: TableOptions = DEFAULTS) -> Page:
    """The verdict, and the collectives."""
    return Page(
        lambda width: [
            *_headline(summary, traffic, options, width), Text(), *traffic_tables(traffic, options).lines(width),
            *_times(summary, options, width),
        ]
    )  # fmt: skip


def traffic_tables(traffic: Traffic, options: TableOptions = DEFAULTS) -> Page:
    """The collectives, those that are alike as one and the largest first, and the totals per kind."""
    if not traffic.collectives:
        return Page(lambda width: paragraph("no collectives: no device needs anything from another", width))
    groups = traffic.groups
    if options.unfold:
        groups = tuple(CollectiveGroup((row,)) for row in traffic.collectives)
    table = _collectives_table("collectives", groups, traffic, options)
    return Page(lambda width: [*table.lines(width), Text(), *_kinds_table(traffic).lines(width)])


def summary_text(summary: Summary) -> str:
    """The tables as plain text."""
    return plain_text(summary_tables(summary))


def traffic_text(traffic: Traffic) -> str:
    """The tables of the collectives as plain text."""
    return plain_text(traffic_tables(traffic))


def plain_text(page: Page, width: int = PLAIN_WIDTH) -> str:
    """A page as plain text of a width."""
    return "".join(f"{line.plain.rstrip()}\n" for line in page.lines(width))


def summary_html(summary: Summary) -> str:
    """The tables as HTML for a notebook cell."""
    return html(summary_tables(summary))


def html(page: Page) -> str:
    """A page as HTML for a notebook cell; what it says of the program is escaped."""
    console = Console(file=StringIO(), record=True, width=PLAIN_WIDTH, force_jupyter=False)  # else it shows itself
    console.print(page, soft_wrap=True)
    style = "font-family: monospace; line-height: 1.25; white-space: pre; overflow-x: auto"
    return console.export_html(inline_styles=True, code_format=f'<pre style="{style}">{{code}}</pre>')


# The verdict


def _headline(summary: Summary, traffic: Traffic | None, options: TableOptions, width: int) -> list[Text]:
    """The devices, the bytes before and after, who shards what, what is sent, and warnings."""
    lines = paragraph(_title(summary, options), width, style="bold")
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


def _times(summary: Summary, options: TableOptions, width: int) -> list[Text]:
    if not (options.times and summary.stages):
        return []
    times = ", ".join(f"{name} {format_seconds(seconds)}" for name, seconds in summary.stages)
    return [Text(), *paragraph(f"time: {times}", width, style="dim")]


# Inputs and outputs


def _tensor_table(title: str, rows: Sequence[TensorRow], options: TableOptions, has_meshes: bool) -> Table:
    cells = [_tensor_cells(row, options, has_meshes) for row in rows]
    folded = fold(
        (row.name, (rest, position) if options.unfold else rest)
        for position, (row, rest) in enumerate(zip(rows, cells))
    )
    table = []
    for found in folded:
        tensor, sharding, local = cells[found.members[0]]
        given_by = given_by_cell([rows[member] for member in found.members])
        count = f"×{len(found.members)}" if len(found.members) > 1 else ""
        size = sum(rows[member].bytes_per_device for member in found.members)
        table.append((Cell(found.name), Cell(count), tensor, sharding, given_by, local, Cell(format_bytes(size))))
    return Table(title, _TENSOR_COLUMNS, table)


def _tensor_cells(row: TensorRow, options: TableOptions, has_meshes: bool) -> tuple[Cell, Cell, Cell]:
    is_smaller = row.bytes_per_device < row.bytes_total
    sharding = format_sharding(row.sharding, options.notation)
    if has_meshes and row.given_by and row.sharding is not None and isinstance(row.sharding.mesh, str):
        sharding += f" on {format_symbol(row.sharding.mesh)}"
    return (
        Cell(format_shape(row.shape, row.dtype)),
        Cell(sharding, style="green" if is_smaller else "dim"),
        Cell(format_shape(row.local_shape, row.dtype)),
    )


class Given(Protocol):
    """What tells who gave a tensor its sharding."""

    @property
    def given_by(self) -> str:
        """Who."""

    @property
    def is_inferred(self) -> bool:
        """Whether it was propagation."""

    @property
    def origins(self) -> tuple[str, ...]:
        """The annotations that it comes from."""


def given_by_cell(rows: Sequence[Given]) -> Cell:
    """Who gave tensors that share a row their sharding; where propagation did, from where, if that is known."""
    giver = rows[0].given_by
    origins = dict.fromkeys(origin for row in rows if row.is_inferred for origin in row.origins)
    names = [found.name for found in fold((origin, None) for origin in origins)]
    more = f" and {len(names) - _MOST_ORIGINS} more" if len(names) > _MOST_ORIGINS else ""
    text = ", ".join(names[:_MOST_ORIGINS]) + more
    return Cell(text or giver, short="inferred" if rows[0].is_inferred else None)


def _cut(table: Table, most: int | None, more: str, width: int) -> list[Text]:
    """The first rows of a table, and how many there are more."""
    left = 0 if most is None else len(table.rows) - most
    if left < 2:  # one row takes as much room as saying that there is one
        return table.lines(width)
    shown = Table(table.title, table.columns, table.rows[:most])
    return [*shown.lines(width), *paragraph(f"and {left} more rows: {more}", width, style="dim")]


# Collectives


def _collectives_table(title: str, groups: Sequence[CollectiveGroup], traffic: Traffic, options: TableOptions) -> Table:
    is_one_mesh = len({row.mesh for row in traffic.collectives if row.mesh is not None}) < 2
    columns, cells = zip(*_collective_columns(is_one_mesh, options))
    return Table(title, columns, [tuple(cell(group) for cell in cells) for group in groups])


def _largest(traffic: Traffic, options: TableOptions) -> Table:
    groups = traffic.groups[: _MOST_GROUPS if options.most_rows != 0 else _FEWEST_GROUPS]
    return _collectives_table("largest collectives", groups, traffic, options)


def _collective_columns(is_one_mesh: bool, options: TableOptions) -> tuple[_Collectives, ...]:
    """The columns, each with what stands in it for a group."""
    return (
        (Column("kind"), lambda group: Cell(group.first.kind)),
        (Column(""), lambda group: Cell(_times_sent(group))),
        (Column("bytes sent", is_number=True), lambda group: Cell(format_bytes(group.total_bytes))),
        (Column("along", rank=1), lambda group: Cell(_along(group.first, is_one_mesh, options.notation))),
        (Column("because of", rank=3, wraps=True), lambda group: _cause(group.first)),
        (Column("source", rank=1), lambda group: _source(group.first)),
        (Column("on one device", rank=4), lambda group: _before_and_after(group.first)),
        (Column("op", rank=5), lambda group: Cell(_ops(group))),
    )


def _cause(row: CollectiveRow) -> Cell:
    cause = row.cause or "the op itself"
    return Cell(cause, short=cause.replace("of result of ", "of ").replace("stablehlo.", ""))


def _source(row: CollectiveRow) -> Cell:
    place, inner = format_place(row.place), format_place(row.source)
    return Cell(place if inner == place else f"{place} ({inner})", short=format_place(row.place, only_name=True))


def _before_and_after(row: CollectiveRow) -> Cell:
    return Cell(f"{format_shape(row.shape_before, row.dtype)} → {format_shape(row.shape_after, row.dtype)}")


def _times_sent(group: CollectiveGroup) -> str:
    row = group.first
    times = f"×{group.count}" if group.count > 1 else ""
    rounds = "per round" if row.is_lower_bound else ""
    taken = "" if row.is_counted else "if taken"
    return " ".join(filter(None, (times, rounds, taken)))


def _along(row: CollectiveRow, is_one_mesh: bool, notation: Notation) -> str:
    if row.axes is None:
        return f"groups of {row.group_size}"
    axes = ", ".join(format_axis(axis, notation) for axis in row.axes)
    return axes if is_one_mesh or row.mesh is None else f"{row.mesh}: {axes}"


def _ops(group: CollectiveGroup) -> str:
    """The ops of a group under one name, or under that of the first."""
    names = list(dict.fromkeys(row.op for row in group.rows if row.op is not None))
    folded = fold([(name, None) for name in names])
    if not folded:
        return ""
    return folded[0].name + (f" and {len(folded) - 1} more" if len(folded) > 1 else "")


def _kinds_table(traffic: Traffic) -> Table:
    kinds = traffic.kinds
    count = sum(total.count for total in kinds)
    rows = []
    whole = (KindTotal("all", count, traffic.sent_bytes_per_device, traffic.is_lower_bound),) if len(kinds) > 1 else ()
    for total in (*kinds, *whole):
        sign = "≥ " if total.is_lower_bound else ""
        texts = total.kind, f"{sign}{total.count}", sign + format_bytes(total.sent_bytes_per_device)
        rows.append(tuple(map(Cell, texts)))
    return Table("totals", _KIND_COLUMNS, rows)


def _all_of_a_run(summary: Summary, traffic: Traffic | None, options: TableOptions, width: int) -> list[Text]:
    lines = summary_tables(summary, options).lines(width)
    if traffic is not None:
        lines += [Text(), *traffic_tables(traffic, options).lines(width)]
    return lines
