"""What a compiler made of a program, beside what was estimated, row by row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyshardy.costing.traffic import AxesTotal
from pyshardy.report.confirmation import Confirmation, MemoryCheck, check_collectives
from pyshardy.report.printing import plain_text
from support.tables import tables_in

GATHER = AxesTotal("all_gather", "data", 3, 3000)
REDUCE = AxesTotal("all_reduce", "data, model", 2, 2000)
SCATTER = AxesTotal("reduce_scatter", "data, model", 1, 1000)
PERMUTE = AxesTotal("collective_permute", "model", 8, 10, is_lower_bound=True)
MEMORY = {"argument": 1000, "output": 600, "alias": 500, "temp": 400, "generated_code": 50}
FOUND = Confirmation(
    compiler="libtpu 0.0.52 for 8 x v5e (2x4)", hardware="TPU v5e", seconds=2.0, memory=tuple(MEMORY.items()),
    memory_limit_bytes=2000.0, out_of_memory=None, needed_bytes=None, collectives=(), partitioned=(),
    estimated_peak_bytes=1700, estimated_memory=(("argument", 1000), ("output", 100), ("temp", 600)),
    rows=check_collectives([GATHER, SCATTER, PERMUTE], [replace(GATHER, count=5, sent_bytes_per_device=3300), REDUCE]),
)  # fmt: skip


def test_rows_are_by_kind_and_axes_and_the_largest_come_first() -> None:
    rows = [(row.kind, row.axes, row.holds) for row in FOUND.rows]
    assert rows == [
        ("all_gather", "data", True), ("all_reduce", "data, model", False), ("reduce_scatter", "data, model", False),
        ("collective_permute", "model", False),
    ]  # fmt: skip
    assert FOUND.rows[0].change == pytest.approx(-1 / 11)
    assert [row.change for row in FOUND.rows[1:]] == [-1.0, None, None]


@pytest.mark.parametrize("sent, holds", [(1000, True), (1200, True), (1201, False), (799, False), (0, False)])
def test_an_estimate_holds_within_a_fifth(sent: int, holds: bool) -> None:
    (row,) = check_collectives([AxesTotal("all_gather", "x", 1, sent)], [AxesTotal("all_gather", "x", 1, 1000)])
    assert row.holds is holds


def test_other_axes_are_another_row() -> None:
    rows = check_collectives([AxesTotal("all_gather", "x", 1, 8)], [AxesTotal("all_gather", "y", 1, 8)])
    assert [(row.axes, row.holds) for row in rows] == [("x", False), ("y", False)]


def test_the_parts_of_the_memory() -> None:
    assert FOUND.memory_rows == (
        MemoryCheck("arguments", 1000, 1000), MemoryCheck("results with memory of their own", 100, 100),
        MemoryCheck("temporary values", 400, 600), MemoryCheck("peak", 1500, 1700), MemoryCheck("code, besides", 50),
    )  # fmt: skip
    assert FOUND.peak_bytes == 1500
    assert [row["holds"] for row in FOUND.to_json()["memory_rows"]] == [True, True, False, True, None]


def test_the_tables_fit_into_80_columns() -> None:
    text = plain_text(FOUND.tables(), 80)
    assert max(map(len, text.splitlines())) <= 80
    tables = tables_in(text)
    memory, collectives = tables["memory per device"], tables["collectives"]
    assert [row["change"] for row in memory] == ["+0%", "+0%", "-33%", "-12%", ""]
    assert [row["kind"] for row in collectives] == [
        "all_gather", "all_reduce", "reduce_scatter", "collective_permute", "all",
    ]  # fmt: skip
    assert [row["change"] for row in collectives] == ["-9%", "gone", "new", "new", "-24%"]
    assert [row["compiled"] for row in collectives] == ["3", "", "1", "≥ 8", "≥ 12"]


def test_it_is_said_whether_the_estimate_holds() -> None:
    said = " ".join(plain_text(FOUND.tables(), 200).split())
    assert "within 20%, the estimate of cost holds for the peak of memory, and for 1 of 4 kinds of collectives" in said
    assert "the compiler makes one reduce_scatter of an all_reduce whose result is sliced, which sends half" in said
    worse = " ".join(plain_text(replace(FOUND, estimated_peak_bytes=1000).tables(), 200).split())
    assert "does not hold for the peak of memory, but for 1 of 4 kinds of collectives" in worse


def test_nothing_is_said_of_an_estimate_that_was_not_made() -> None:
    found = replace(FOUND, hardware="", estimated_peak_bytes=None, estimated_memory=())
    text = plain_text(found.tables(), 120)
    assert "the estimate of cost" not in text and "partitioned" in text
    assert {row["change"] for row in tables_in(text)["memory per device"]} <= {""}
