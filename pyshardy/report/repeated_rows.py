"""Tables of which many rows are equal, as where a model has many equal layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

_ROW = "row"


class RepeatedRows:
    """A table for a `rich` console that lays out each distinct row once: `rich` takes half a millisecond for a row.

    Args:
        table: The table with its columns and without rows.
        rows: The cells of every row.

    >>> table = Table("letter", show_edge=False, box=None)
    >>> Console(width=20).print(RepeatedRows(table, [("a",), ("b",), ("a",)]))  # doctest: +NORMALIZE_WHITESPACE
    letter
    a
    b
    a
    """

    def __init__(self, table: Table, rows: Sequence[tuple[str, ...]]) -> None:
        self._numbers = {cells: number for number, cells in enumerate(dict.fromkeys(rows))}
        self._rows = [self._numbers[cells] for cells in rows]
        self._table = table
        for cells, number in self._numbers.items():
            table.add_row(*map(Text, cells), style=Style(meta={_ROW: number}))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        heading: list[Segment] = []
        lines: list[list[Segment]] = [[] for _ in self._numbers]
        for line in console.render_lines(self._table, options, pad=False, new_lines=True):
            numbers = (segment.style.meta.get(_ROW) for segment in line if segment.style is not None)
            number = next((number for number in numbers if number is not None), None)
            (heading if number is None else lines[number]).extend(line)
        yield from heading
        for number in self._rows:
            yield from lines[number]
