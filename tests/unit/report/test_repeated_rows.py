"""Tables of which many rows are equal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pyshardy.report.repeated_rows import RepeatedRows

LONG = "a cell that needs [several] lines, as it is much wider than its column"
ROWS = [("a", "1"), ("b", "22"), ("a", "1"), ("", LONG), ("a", "1"), ("", LONG), ("\u2265 1", "1")]


def empty(**options: object) -> Table:
    table = Table("name", title="a title", title_justify="left", show_edge=False, **options)  # type: ignore[arg-type]
    table.add_column("number", justify="right", overflow="fold")
    return table


def printed(table: object, width: int, **options: object) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, **options).print(table)  # type: ignore[arg-type]
    return stream.getvalue()


@pytest.mark.parametrize("width", [12, 30, 60, 200])
@pytest.mark.parametrize(
    "options", [{}, {"force_terminal": True, "color_system": "truecolor"}], ids=["text", "terminal"]
)
@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], ROWS[3:4] * 3, []], ids=["many", "one", "all equal", "none"])
def test_it_looks_as_with_every_row_laid_out(
    rows: list[tuple[str, str]], options: dict[str, object], width: int
) -> None:
    table = empty()
    for cells in rows:
        table.add_row(*map(Text, cells))
    assert printed(RepeatedRows(empty(), rows), width, **options) == printed(table, width, **options)


def test_each_distinct_row_is_laid_out_once() -> None:
    table = empty()
    repeated = RepeatedRows(table, ROWS * 100)
    assert table.row_count == 4
    assert len(printed(repeated, 200).splitlines()) == 3 + 700
