"""The tables of a plan."""

from __future__ import annotations

from pyshardy.report.plan import PlanRow, PlanSummary
from pyshardy.report.plan_tables import plan_tables


def page_of(rows: list[PlanRow]) -> str:
    chosen = PlanRow("the plan", 1.0, 2**30, True, True)
    found = PlanSummary(
        "v5e", (("data", 4),), "formula", 2**34, (), chosen, tuple(rows), (), (), 1, 1, 1.0, 0, "time", ()
    )
    return "\n".join(line.plain for line in plan_tables(found).lines(100))


def test_of_many_ways_with_the_same_figures_the_first_is_shown() -> None:
    text = page_of([PlanRow(f"way {number}.", 1.0 + number // 5, 2**30, True, True) for number in range(40)])
    assert [number for number in range(40) if f"way {number}." in text] == list(range(0, 40, 5))
    assert "32 more, no faster" in text


def test_of_few_ways_all_are_shown() -> None:
    text = page_of([PlanRow(f"way {number}.", 1.0, 2**30, True, True) for number in range(8)])
    assert all(f"way {number}." in text for number in range(8)) and "no faster" not in text
