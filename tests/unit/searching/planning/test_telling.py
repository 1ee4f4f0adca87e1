"""Remarks beside a plan."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pyshardy.report.plan import PlanRow
from pyshardy.searching.autopartition.objective import Objective
from pyshardy.searching.planning.telling import _roomier

GIB = 2**30


def remarks(chosen: tuple[float, float], *others: tuple[float, float]) -> list[str]:
    """What is said of a plan of so many seconds and GiB, beside others, on a chip with 80 GiB."""
    rows = [PlanRow("", seconds, size * GIB, True, True) for seconds, size in (chosen, *others)]
    known = SimpleNamespace(front=lambda _: rows)
    state: Any = SimpleNamespace(
        options=SimpleNamespace(limit=80 * GIB), objective=Objective(80 * GIB), estimates=known
    )
    return list(_roomier(state, rows[0]))


def test_a_plan_with_room_is_told_beside_one_without() -> None:
    assert remarks((1.0, 79.5), (1.03, 31), (1.5, 20)) == [
        "the plan leaves 512.0 MiB of 80.0 GiB free, which is less than estimates may be wrong: one of 31.0 GiB takes "
        "about 3.0% longer; --memory 72.0GiB looks for such a plan"
    ]


@pytest.mark.parametrize("others", [[], [(1.2, 31)], [(1.03, 75)]])
def test_nothing_is_said_of_plans_that_cost_much_or_are_as_tight(others: list[tuple[float, float]]) -> None:
    assert remarks((1.0, 79.5), *others) == []
