"""The difference between two plans."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pyshardy
from pyshardy.core.axes import Dims
from pyshardy.errors import UsageError
from pyshardy.report.constraints import PlanConstraint
from pyshardy.report.plan import CompiledRow, PlanRow, PlanSpec, PlanSummary
from pyshardy.report.plan_difference import ConstraintChange, FigureChange, InputSpecChange, plan_difference
from pyshardy.results.plan import Plan

WHOLE: Dims = ((), ())
SPLIT: Dims = (("data",), ())


def spec(name: str, axes: Dims, count: int = 1, is_output: bool = False) -> PlanSpec:
    return PlanSpec(name, (8, 4), "f32", axes, count, is_output)


def constraint(line: int, axes: Dims) -> PlanConstraint:
    return PlanConstraint("h", "f", "net.py", line, 4, line, 9, (8, 4), "f32", axes, 1, 0.1, 2.0)


def plan(*specs: PlanSpec, seconds: float = 1.0, **others: Any) -> PlanSummary:
    row = PlanRow("the plan", seconds, 2**20, True, True, sent_bytes=1024)
    found = PlanSummary("v5e", (("data", 4),), "formula", 2**30, specs, row, (), (), (), 1, 1, 1.0, 0, "time", ())
    return replace(found, **others)


BEFORE = plan(spec("w1", WHOLE), spec("w2", WHOLE), spec("x", SPLIT), constraints=(constraint(3, SPLIT),))


def test_inputs_that_change_alike_are_one_row() -> None:
    after = plan(spec("w1", SPLIT), spec("w2", SPLIT, 3), spec("x", SPLIT), spec("new", SPLIT), seconds=2.0)
    found = plan_difference(BEFORE, after)
    assert found.inputs == (
        InputSpecChange(("w1", "w2"), 2, (8, 4), "f32", WHOLE, SPLIT),
        InputSpecChange(("new",), 1, (8, 4), "f32", None, SPLIT),
    )
    assert found.constraints == (ConstraintChange("net.py:3", "`h` of `f`", SPLIT, None),)
    assert found.figures[0] == FigureChange("step", 1.0, 2.0) and found.differs
    text = str(found)
    assert "w1 and 1 like it" in text and "2.00" in text and "P('data')" in text and "net.py:3" in text
    assert json.loads(json.dumps(found.to_json()))["inputs"][1]["before"] is None


def test_equal_plans_differ_in_nothing() -> None:
    again = replace(BEFORE, specs=(*BEFORE.specs, spec("result", SPLIT, is_output=True)))
    found = plan_difference(BEFORE, again)
    assert not found.differs and "the same shardings and constraints" in str(found)
    assert repr(found) == "<PlanDifference: no shardings differ>"


def test_other_conditions_are_said() -> None:
    found = plan_difference(BEFORE, replace(BEFORE, mesh=(("data", 8),), hardware="H100"))
    assert found.conditions == ("mesh: data=4 before, data=8 after", "hardware: v5e before, H100 after")
    assert found.differs and "mesh: data=4 before" in str(found)


def test_figures_are_the_compiler_s_where_both_were_confirmed() -> None:
    compiled = replace(BEFORE, compiled=(CompiledRow("the plan", 3.0, 5.0, True, 7, 1.0, 1024),))
    assert plan_difference(compiled, compiled).figures[0].before == 3.0
    assert plan_difference(BEFORE, compiled).figures == plan_difference(BEFORE, BEFORE).figures


def test_plans_are_compared_by_the_verb_and_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from pyshardy.cli.main import main

    after = plan(spec("w1", SPLIT), spec("w2", WHOLE), spec("x", SPLIT))
    assert pyshardy.diff(Plan(BEFORE), Plan(after)) == plan_difference(BEFORE, after)
    paths = [str(tmp_path / f"{name}.json") for name in ("before", "after")]
    for path, one in zip(paths, (BEFORE, after)):
        Plan(one).save(path)
    assert main(["diff", *paths]) == 1 and "inputs that are sharded otherwise" in capsys.readouterr().out
    assert main(["diff", paths[0], paths[0], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["inputs"] == []
    assert main(["diff", paths[0], "other.mlir"]) == 2
    assert "before.json and other.mlir, needed two plans, both named *.json" in capsys.readouterr().err


def test_a_plan_beside_a_program_is_refused() -> None:
    with pytest.raises(UsageError, match="got a plan and a str, needed two plans"):
        pyshardy.diff(Plan(BEFORE), "module {}")
