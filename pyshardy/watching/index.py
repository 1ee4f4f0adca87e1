"""The programs of a watched script at a glance: as a table, and as a page with links to their pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from pyshardy.core.text import format_bytes
from pyshardy.report.collective_table import scope_cell
from pyshardy.report.cost import format_duration
from pyshardy.report.layout import Cell, Column, Table, without_empty
from pyshardy.source.places import format_place

if TYPE_CHECKING:
    from pyshardy.watching.found import Found

_STYLE = (
    "body{font-family:sans-serif;margin:2em;color-scheme:light dark}table{border-collapse:collapse}"
    "td,th{padding:.2em 1.2em .2em 0;text-align:right;white-space:nowrap}"
    "td:first-child,th:first-child{text-align:left}code{font-family:monospace}"
)
_COLUMNS = (
    Column("program"),
    Column("devices", 4, is_number=True),
    Column("step", 1, is_number=True),
    Column("of it collectives", 2, is_number=True),
    Column("costliest line", 1),
    Column("in", 2),
    Column("sends", 3, is_number=True),
    Column("peak memory", 2, is_number=True),
    Column("gathered whole", 3, is_number=True),
    Column("", 1),
)


def table_of_programs(found: Sequence[Found]) -> Table:
    """The programs at a glance.

    Args:
        found: The programs that are shown.
    """
    rows = [(Cell(one.title), *_cells(one)) for one in found]
    return Table("programs of the script (estimated)", _COLUMNS, rows)


def index_page(found: Sequence[Found], others: Sequence[dict[str, Any]]) -> bytes:
    """The page that lists programs, with links to their pages.

    Args:
        found: The programs that are shown.
        others: The names, numbers and reasons of the others.
    """
    table = without_empty(table_of_programs(found))
    head = "".join(f"<th>{escape(column.heading)}" for column in table.columns)
    rows = "".join(
        f"<tr><td>{_link(one)}{''.join(f'<td>{escape(cell.text)}' for cell in cells)}\n"
        for one, (_, *cells) in zip(found, table.rows)
    )
    rest = "".join(f"<li><code>{escape(one['name'])}</code>{_times(one)}: {escape(one['why'])}" for one in others)
    more = f"<h2>Not shown</h2>\n<ul>\n{rest}</ul>\n" if rest else ""
    return (
        "<!DOCTYPE html><html lang=en><meta charset=utf-8><title>Programs of the script</title>"
        f"<style>{_STYLE}</style>\n<h1>Programs of the script (estimated)</h1>\n"
        f"<table>\n<tr>{head}\n{rows}</table>\n{more}"
    ).encode(errors="backslashreplace")


def costliest_line(collectives: Sequence[dict[str, Any]]) -> tuple[Cell, Cell]:
    """The line whose collectives take longest, and the modules that they are in; empty if no line is known.

    If a framework calls the model, all collectives have the line of that call. Then the modules tell more.

    >>> rows = [("a.py", 3, 2.0, "up"), ("b.py", 7, 1.2, "down"), ("b.py", 7, 1.5, "up")]
    >>> found = costliest_line(
    ...     [
    ...         {"source": [file, line, 0], "seconds": seconds, "ops": [f"jit(step)/{scope}/dot_general"]}
    ...         for file, line, seconds, scope in rows
    ...     ]
    ... )
    >>> [cell.text for cell in found]
    ['b.py:7', 'up and 1 more']
    """
    seconds: Counter[tuple[str, int]] = Counter()
    for row in collectives:
        if row["source"]:
            seconds[row["source"][0], row["source"][1]] += row["seconds"]
    if not seconds:
        return Cell(""), Cell("")
    costliest = max(seconds, key=lambda line: seconds[line])
    there = [row for row in collectives if row["source"] and tuple(row["source"][:2]) == costliest]
    ops = [op for row in sorted(there, key=lambda row: -row["seconds"]) for op in row["ops"]]
    place = (*costliest, 0)
    return Cell(format_place(place), short=format_place(place, only_name=True)), scope_cell(ops)


def _times(one: dict[str, Any]) -> str:
    return f" ×{one['count']}" if one["count"] > 1 else ""


def _link(found: Found) -> str:
    title = escape(found.title)
    return f'<a href="{escape(found.page, quote=True)}">{title}</a>' if found.page else title


def _cells(found: Found) -> tuple[Cell, ...]:
    """What stands behind the name of a program."""
    devices = Cell(str(found.compiled.devices))
    if found.error:
        return devices, *[Cell("")] * (len(_COLUMNS) - 3), Cell(f"not analysed: {found.error.splitlines()[0]}")
    cost = (found.data.get("cost") or {}).get("estimated")
    whole = Cell(str(len(found.data.get("replications") or []) or ""))
    last = Cell("not run" if found.compiled.stops else "")
    if cost is None:
        return devices, *[Cell("")] * (len(_COLUMNS) - 4), whole, last
    sent = sum(row["sent_bytes_per_device"] for row in cost["collectives"])
    return (
        devices,
        Cell(format_duration(cost["step_seconds"])),
        Cell(format_duration(cost["exposed_seconds"])),
        *costliest_line(cost["collectives"]),
        Cell(format_bytes(sent) if sent else ""),
        Cell(format_bytes(cost["memory"]["bytes"])),
        whole,
        last,
    )
