"""What makes a plan better: it fits, then time with a little memory, or memory with a little time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyshardy.report.plan import PlanRow
from pyshardy.searching.autopartition.objective import Goal, Objective

LIMIT = 250.0
SIZES = st.floats(1e-3, 1e3)


def row(seconds: float, bytes: float, sending: float = 0.0) -> PlanRow:
    return PlanRow("", seconds, bytes, bytes <= LIMIT, True, communication_seconds=sending)


@pytest.mark.parametrize(
    ("seconds", "bytes", "expected"),
    [
        (0.9, 200.0, True),
        (0.999, 200.0, False),  # a thousandth of the time is not worth two fifths of the memory
        (1.004, 10.0, False),
        (1.003, 10.0, True),
        (1.0, 50.0, True),
        (1.0 - 1e-12, 100.0, False),
        (0.5, 260.0, False),
        (0.96, 249.0, False),  # next to nothing is left, and estimates err
        (0.93, 249.0, True),
    ],
)
def test_memory_decides_between_plans_of_about_equal_time(seconds: float, bytes: float, expected: bool) -> None:
    assert Objective(LIMIT).is_better(row(seconds, bytes), row(1.0, 100.0)) is expected


def test_of_plans_that_do_not_fit_the_smaller_is_better() -> None:
    is_better, large = Objective(LIMIT).is_better, row(1.0, 300.0)
    assert is_better(row(9.0, 100.0), large) and is_better(row(9.0, 260.0), large)
    assert not is_better(row(0.1, 400.0), large)


def test_what_fits_comes_first_then_what_is_fast_then_what_is_small() -> None:
    ranked = [row(1.0, 50.0), row(1.0, 100.0), row(2.0, 1.0), row(0.5, 260.0), row(0.1, 300.0)]
    assert sorted([ranked[-1], *ranked[:-1]], key=Objective(LIMIT).rank) == ranked


def test_memory_as_the_goal() -> None:
    objective = Objective(LIMIT, Goal.MEMORY)
    assert objective.is_better(row(9.0, 50.0), row(1.0, 60.0)) and not objective.is_better(
        row(0.1, 60.0), row(1.0, 50.0)
    )
    assert objective.is_better(row(0.9, 50.0), row(1.0, 50.0))


@given(st.sampled_from(Goal), SIZES, SIZES, SIZES, SIZES)
def test_the_order_is_total_and_what_is_missing_is_worst(
    goal: Goal, one: float, size: float, other: float, bytes: float
) -> None:
    objective, first, second = Objective(LIMIT, goal), row(one, size), row(other, bytes)
    assert not (objective.is_better(first, second) and objective.is_better(second, first))
    if objective.is_better(first, second):
        assert objective.rank(first) < objective.rank(second)
    assert objective.is_better(row(one / 2, size / 2), first)
    if first.fits and bytes > 2 * LIMIT:
        assert objective.score(first) < objective.score(second)


def test_of_equal_plans_the_one_that_sends_less_is_better() -> None:
    is_better = Objective(LIMIT).is_better
    assert is_better(row(1.0, 101.0), row(1.0, 100.0, 0.2)) and not is_better(row(1.0, 101.0, 0.2), row(1.0, 100.0))
    assert not is_better(row(1.01, 100.0), row(1.0, 100.0, 0.2))


def test_constraints_have_to_gain_enough() -> None:
    gains = Objective(LIMIT).gains
    assert not gains(row(0.997, 100.0), row(1.0, 100.0)) and gains(row(0.994, 100.0), row(1.0, 100.0))
    assert gains(row(1.0, 50.0), row(1.0, 200.0))
