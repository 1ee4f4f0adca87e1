"""The data of the card that shows a plan."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from pyshardy.report.page.plan import ROW_KINDS, plan_data
from pyshardy.report.plan import THE_PLAN, PlanRow
from pyshardy.results.plan import Plan, plan_from_json
from tests.unit.report.test_plan_difference import BEFORE, constraint

ROWS = (PlanRow("Megatron", 2.0, 5.0, True, True),)
FRONT = (
    PlanRow("", BEFORE.chosen.seconds, BEFORE.chosen.bytes, True, True),
    PlanRow("", 2.0, 5.0, True, True),
    PlanRow("", 3.0, 1.0, False, False),
)


def test_rows_are_the_plan_then_experts_then_what_is_new_on_the_front() -> None:
    data = plan_data(replace(BEFORE, rows=ROWS, front=FRONT))
    assert [(row[0], ROW_KINDS[row[4]]) for row in data["rows"]] == [
        (THE_PLAN, "the plan"), ("Megatron", "experts' and the given"), ("", "other candidates"),
    ]  # fmt: skip
    assert data["rows"][2][1:4] == [3.0, 1.0, False]
    assert data["rules"] == [["x", 1, "P('data')"], ["*", 2, "P()"]]
    assert data["constraints"][0][:3] == ["net.py:3", constraint(3, ()).value, "P('data')"]
    assert json.loads(json.dumps(data)) == data


def test_the_report_of_a_plan_has_its_figures(tmp_path: Path) -> None:
    import pyshardy

    from ...api.test_search import PROGRAM

    plan = pyshardy.search(PROGRAM, hardware="h100", candidates=10)
    plan.report(tmp_path / "plan.json", format="json")
    data = json.loads((tmp_path / "plan.json").read_text())
    assert data["plan"]["rows"][0][:3] == [THE_PLAN, plan.step_seconds, plan.peak_bytes]
    assert data["overview"]["peak"]["bytes"] == plan.peak_bytes and data["run"]["seconds"] == plan.step_seconds
    saved = plan_from_json(plan.to_json())
    Plan(saved.summary, plan.module).report(tmp_path / "saved.json", format="json")
    assert json.loads((tmp_path / "saved.json").read_text())["run"] is None
