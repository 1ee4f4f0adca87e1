"""Tables and paragraphs that fit a width."""

from __future__ import annotations

import pytest

from pyshardy.report.layout import Cell, Column, Table, paragraph

COLUMNS = Column("name"), Column(""), Column("why", rank=2, wraps=True), Column("size", rank=1, is_number=True)


def table(*rows: tuple[str, str, str, str], title: str = "") -> Table:
    return Table(title, COLUMNS, [tuple(map(Cell, row)) for row in rows])


def printed(table: Table, width: int) -> list[str]:
    return [str(line) for line in table.lines(width)]


TWO = table(("first", "×2", "because it is so", "10"), ("second", "", "as before", "9"), title="a table")


def test_with_room_everything_stands_in_columns() -> None:
    assert printed(TWO, 80) == [
        "a table",
        "name        why               size",
        "──────  ──  ────────────────  ────",
        "first   ×2  because it is so    10",
        "second      as before            9",
    ]


def test_words_go_on_the_next_line_before_a_column_is_left_out() -> None:
    long = table(("first", "×2", "because it is so and not otherwise", "10"))
    assert printed(long, 41)[2:] == [
        "first  ×2  because it is so and not    10",
        "           otherwise",
    ]


def test_columns_of_the_highest_rank_go_first() -> None:
    assert printed(TWO, 20)[1:] == [
        "name        size",
        "──────  ──  ────",
        "first   ×2    10",
        "second         9",
    ]


def test_shorter_cells_come_before_columns_that_are_left_out() -> None:
    cells = Cell("first"), Cell(""), Cell("a_word_that_is_long", short="a_word"), Cell("10")
    assert printed(Table("", COLUMNS, [cells]), 20) == [
        "name   why     size",
        "─────  ──────  ────",
        "first  a_word    10",
    ]


def test_a_first_cell_that_is_too_long_has_a_line_of_its_own() -> None:
    rows = table(("a_name_that_is_too_long", "×2", "", "10"), ("b", "", "", "9"))
    assert printed(rows, 16) == [
        "name",
        "────────────  ──",
        "a_name_that_is_too_long",
        "              ×2",
        "b",
    ]


@pytest.mark.parametrize("width", range(1, 60))
def test_no_word_is_cut_and_the_first_column_stays(width: int) -> None:
    words = " ".join(line.partition(" (no room for: ")[0] for line in printed(TWO, width)).split()
    assert {"first", "second", "×2"} <= set(words)
    assert {word for word in words if not word.startswith("─")} <= set(" ".join(printed(TWO, 80)).split())


def test_wide_characters_take_their_room() -> None:
    found = printed(table(("テンソル", "", "", "1"), ("abc", "", "", "2")), 80)
    assert found[2:] == ["テンソル     1", "abc          2"]


@pytest.mark.parametrize(("name", "shown"), [("a\nb", r"a\nb"), ("\x1b[31mred", r"\x1b[31mred"), ("\udcff", r"\udcff")])
def test_characters_that_would_end_a_line_are_written_out(name: str, shown: str) -> None:
    assert printed(table((name, "", "", "1")), 80)[2] == f"{shown}     1"
    assert [str(line) for line in paragraph(name, 80)] == [shown]


def test_empty_columns_are_left_out() -> None:
    assert printed(table(("a", "", "", "1")), 80)[0] == "name  size"


def test_a_paragraph_is_broken_at_spaces() -> None:
    assert [str(line) for line in paragraph("much is said here, and more", 13)] == [
        "much is said",
        "  here, and",
        "  more",
    ]
    assert [str(line) for line in paragraph("a_word_that_is_long", 5)] == ["a_word_that_is_long"]
    assert [str(line) for line in paragraph("", 5)] == [""]


def test_a_cell_that_is_forgotten_is_noticed() -> None:
    with pytest.raises(ValueError, match="^a row of 3 cells under 4 headings$"):
        Table("", COLUMNS, [(Cell("first"), Cell("×2"), Cell("10"))])


LONG = "params.encoder.layers.0.self_attention"
NAMES = Column("name", is_name=True), Column("sharding"), Column("bytes", rank=1, is_number=True)


def named(*names: str) -> Table:
    return Table("", NAMES, [(Cell(name), Cell("P('data')"), Cell("32.0 KiB")) for name in names])


def test_long_names_lose_their_middle_before_a_column_is_omitted() -> None:
    found = printed(named(f"{LONG}.query.kernel", "bias"), 60)
    assert found[0].split() == ["name", "sharding", "bytes"]
    assert found[2].split() == ["params.encode…lf_attention.query.kernel", "P('data')", "32.0", "KiB"]
    assert found[3].split() == ["bias", "P('data')", "32.0", "KiB"]
    assert max(map(len, found)) == 60


def test_extra_columns_are_omitted_before_long_names_lose_their_middle() -> None:
    columns = Column("name", is_name=True), Column("tensor", rank=2, is_extra=True), Column("given by", rank=1)
    rows = [(Cell(f"{LONG}.{one}"), Cell("f32[512]"), Cell("params['w1'], params['w2']", "inferred")) for one in "ab"]
    first = printed(Table("", columns, rows), 55)[2]
    assert first.split() == [f"{LONG}.a", "inferred"]


def test_names_stay_whole_where_there_is_room() -> None:
    assert f"{LONG}.query.kernel" in printed(named(f"{LONG}.query.kernel"), 80)[2]


def test_names_that_differ_in_the_middle_stay_different() -> None:
    found = printed(named(*(f"{LONG}.{one}.long_name_of_kernel" for one in ("query", "output"))), 54)
    first, second = (line.split()[0] for line in found[2:])
    assert first != second and "…" in first and max(map(len, found)) <= 54


def test_names_that_would_be_the_same_stay_whole() -> None:
    names = [f"{LONG}.{one}.{LONG}.{LONG}" for one in ("query", "output")]
    assert [line for line in printed(named(*names), 52) if line.startswith("params")] == names


def test_a_table_without_rows_is_nothing() -> None:
    assert printed(table(title="a table"), 80) == []


def amounts_table(*rows: tuple[str, float, str]) -> Table:
    columns = (
        Column("kind"),
        Column("bytes", is_number=True, total=lambda size: f"{size:.0f} B"),
        Column("for the reason that", rank=1),
    )
    return Table("", columns, [(Cell(kind), Cell(f"{size:.0f} B", amount=size), Cell(why)) for kind, size, why in rows])


def test_rows_that_look_the_same_are_added_up() -> None:
    table = amounts_table(("sum", 5, "of a"), ("gather", 7, "of a"), ("sum", 4, "of b"))
    assert printed(table, 80) == [
        "kind    bytes  for the reason that",
        "──────  ─────  ───────────────────",
        "sum       5 B  of a",
        "gather    7 B  of a",
        "sum       4 B  of b",
    ]
    assert printed(table, 20) == ["kind    bytes", "──────  ─────", "sum       9 B", "gather    7 B"]


def test_sums_that_are_wider_than_their_parts_leave_room() -> None:
    columns = (
        Column("kind"),
        Column("", total=lambda count: f"×{count:.0f}"),
        Column("source", 1),
    )
    table = Table("", columns, [(Cell("sum"), Cell("×50", amount=50), Cell("model.py:7")) for _ in range(3)])
    for width in range(22, 14, -1):
        lines = [str(line) for line in table.lines(width)]
        assert max(map(len, lines)) <= width and "×150" in lines[-1]
        assert ("model.py:7" in lines[-1]) is (width >= len("sum   ×150  model.py:7"))


def test_a_cell_without_an_amount_is_not_added_up() -> None:
    columns = (Column("kind"), Column("", total=lambda count: f"×{count:.0f}"))
    rows = [
        (Cell("sum"), Cell("×2 per round")),
        (Cell("sum"), Cell("×2", amount=2)),
        (Cell("sum"), Cell("×2", amount=2)),
    ]
    assert printed(Table("", columns, rows), 40)[2:] == ["sum   ×4", "sum   ×2 per round"]


def test_the_title_names_the_columns_without_room() -> None:
    assert printed(TWO, 33)[0] == "a table (no room for: why)"
    assert printed(TWO, 80)[0] == "a table"
    assert printed(TWO, 20)[0] == "a table"  # not even the title has room
