"""Estimates beside published training runs; the table of all is in docs/cost.md."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.reference import jaxlib_version

from .published import PAGE, RATIOS, ROWS, estimates, line, table

pytestmark = pytest.mark.slow

SOME = (
    "T1",
    "T8",
    "T14",
    "P8",
    "P10",
    "P13",
    "v5e 16B x1",
    "v5e 16B x32",
    "G1",
    "G2 x1",
    "G2 x16",
    "G6",
    "G7",
    "A7",
    "A8",
)
SOME_NAMES = frozenset(SOME)


@pytest.fixture(scope="module")
def found() -> dict[str, float]:
    return {row.name: seconds for row, seconds in estimates(SOME)}


@pytest.mark.parametrize("name", SOME)
def test_step_times_are_near_the_measured_ones(found: dict[str, float], name: str) -> None:
    (row,) = [row for row in ROWS if row.name == name]
    assert abs(found[name] / row.seconds - 1) <= 0.3


@pytest.mark.parametrize("pair", [pair for pair in RATIOS if SOME_NAMES.issuperset(pair)])
def test_ratios_are_near_the_measured_ones(found: dict[str, float], pair: tuple[str, str]) -> None:
    measured = {row.name: row.seconds for row in ROWS}
    first, second = pair
    assert abs(found[first] / found[second] / (measured[first] / measured[second]) - 1) <= 0.15


@pytest.mark.skipif(
    jaxlib_version() < (0, 12), reason="the page is written with the newest JAX; programs differ slightly"
)
def test_the_page_has_these_rows(found: dict[str, float]) -> None:
    page = PAGE.read_text()
    missing = [
        line(row, found[row.name]) for row in ROWS if row.name in found and line(row, found[row.name]) not in page
    ]
    assert missing == [], "run `python -m cost.published --write` in tests/"
    assert all(f"| {row.name} | {row.what} |" in page for row in ROWS)


def test_a_wrong_time_is_seen(found: dict[str, float]) -> None:
    row = next(row for row in ROWS if row.name == "T1")
    assert line(row, 2 * found["T1"]) not in PAGE.read_text()
    assert "0 of 1 step times are within 30 %" in table([(replace(row, seconds=found["T1"] / 2), found["T1"])])
