"""Values as a table, with one row for equal values, such as those of repeated layers."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from pyshardy.core.folding import fold_names
from pyshardy.core.text import format_bytes, format_shape
from pyshardy.report.given_by import given_by_cell
from pyshardy.report.layout import Cell, Column, Table, paragraph
from pyshardy.report.printing import DEFAULTS, Page, TableOptions
from pyshardy.report.specs import format_sharding
from pyshardy.report.value_row import OP, ValueRow
from pyshardy.source.places import format_place

_COLUMNS = (
    Column("name", is_name=True),
    Column(""),
    Column("tensor", rank=3, is_extra=True),
    Column("sharding"),
    Column("given by", rank=2),
    Column("source", rank=1),
    Column("on one device", rank=5),
    Column("bytes per device", rank=4, is_number=True),
)


def value_tables(title: str, rows: Sequence[ValueRow], options: TableOptions = DEFAULTS) -> Page:
    """The table of values, for a `rich` console.

    Args:
        title: The title of the program.
        rows: The values.
        options: The display options; `unfold` for one row per value.
    """
    table = _table(rows, options)
    split = sum(row.is_split for row in rows)
    said = f"{len(rows)} value{'s' * (len(rows) != 1)} of {title}, {split} sharded"

    def lines(width: int) -> list[Text]:
        return [*paragraph(said, width, style="bold"), *table.lines(width)]

    return Page(lines)


def _table(rows: Sequence[ValueRow], options: TableOptions) -> Table:
    groups: dict[object, list[int]] = {}
    for position, row in enumerate(rows):
        key = (row.name, _alike(row, options)) if not options.unfold else position
        groups.setdefault(key, []).append(position)
    alike = list(groups.values())
    folded = fold_names(
        (rows[group[0]].name, (_alike(rows[group[0]], options), len(group), at if options.unfold else None))
        for at, group in enumerate(alike)
    )
    table = []
    for found in folded:
        members = [rows[position] for at in found.members for position in alike[at]]
        table.append(_cells(found.name, members, options))
    return Table("", _COLUMNS, table)


def _alike(row: ValueRow, options: TableOptions) -> object:
    """The properties that values of one row share besides the name."""
    sharding = format_sharding(row.sharding, options.notation)
    return row.kind, row.op, row.shape, row.dtype, sharding, row.given_by, format_place(row.place)


def _cells(name: str, members: Sequence[ValueRow], options: TableOptions) -> tuple[Cell, ...]:
    row = members[0]
    place = row.place
    is_smaller = row.bytes_per_device < row.bytes_total
    op = "" if row.op is None or row.kind != OP else row.op.rpartition(".")[2]
    is_said = not op or name.rpartition("/")[2] == op or name == row.op
    return (
        Cell(name if is_said else f"{name} ({op})", short=name),
        Cell(f"×{len(members)}" if len(members) > 1 else ""),
        Cell(format_shape(row.shape, row.dtype)),
        Cell(format_sharding(row.sharding, options.notation), style="green" if is_smaller else "dim"),
        given_by_cell(members),
        Cell(format_place(place), short=format_place(place, only_name=True)),
        Cell(format_shape(row.local_shape, row.dtype)),
        Cell(format_bytes(sum(member.bytes_per_device for member in members))),
    )
