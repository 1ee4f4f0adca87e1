"""A plan as a file: what `save` wrote is read again, anything else is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pyshardy
from pyshardy.errors import ShardyError
from pyshardy.report.constraints import PlanConstraint
from pyshardy.report.plan import PlanReason, PlanRow, PlanSpec, PlanSummary
from pyshardy.results.plan import Plan, plan_from_json

ROW = PlanRow("data parallelism", 0.5, 1e9, True, True)
PLAN = Plan(
    PlanSummary(
        hardware="v5p",
        mesh=(("data", 4), ("model", 2)),
        collectives="formula",
        limit=9.5e10,
        specs=(PlanSpec("x", (8, 4), "f32", (("data", "model"), ()), 1), PlanSpec("y", (8,), "f32", ((),), 2, True)),
        chosen=ROW,
        rows=(ROW,),
        front=(ROW,),
        reasons=(PlanReason("x on data", 0.25, -5.0),),
        candidates=7,
        exact=2,
        seconds=1.5,
        seed=0,
        ended_by="time",
        notes=("a note",),
        constraints=(PlanConstraint("h", "f", "net.py", 3, 4, 3, 9, (8,), "f32", (("data",),), 1, 0.1, 2.0),),
    )
)
DATA = json.loads(json.dumps(PLAN.to_json()))
WRONG = (None, True, -1, float("nan"), "x", [3], [["z"]])


def places(data: Any) -> Iterator[tuple[Any, ...]]:
    """The keys that lead to each value inside of plain data."""
    for key in data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        yield (key,)
        yield from ((key, *rest) for rest in places(data[key]))


def with_value(place: tuple[Any, ...], value: Any) -> Any:
    found = inner = copy.deepcopy(DATA)
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return found


def test_what_was_saved_is_read_again(tmp_path: Path) -> None:
    PLAN.save(tmp_path / "plan.json")
    found = pyshardy.load_plan(str(tmp_path / "plan.json"))
    assert found == PLAN
    assert found.specs["x"] == pyshardy.PartitionSpec(("data", "model"), None)
    assert str(found) == str(PLAN)


@pytest.mark.slow
def test_what_is_loaded_can_be_shown() -> None:
    """With a wrong value in any place: an error of ours, or a plan that shows itself."""
    shown = 0
    for place in places(DATA):
        for value in WRONG:
            try:
                plan = plan_from_json(with_value(place, value))
            except ShardyError:
                continue
            assert str(plan) and plan.patch() is not None and plan.specs is not None and json.dumps(plan.to_json())
            shown += 1
    assert shown > 30


def test_errors_say_where() -> None:
    with pytest.raises(pyshardy.UsageError, match=r"got 'x', needed a number\n  at the plan.rows\[0\].seconds"):
        plan_from_json(with_value(("rows", 0, "seconds"), "x"))
    with pytest.raises(ShardyError, match='unknown axis name "z"'):
        plan_from_json(with_value(("specs", 0, "axes", 0, 0), "z"))
