"""The search for constraints, with costs that are made up."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from pyshardy.costing.step_cost import StepCost
from pyshardy.searching.autopartition.constraints import ConstrainableValue, Constrained, ConstraintSearch, changes

AXES = (("x", 2), ("y", 2))
WHOLE = ((), ())
ALONG_X, ALONG_Y = (("x",), ()), (("y",), ())
SITES = [ConstrainableValue(number, (4, 4), "f32", 64.0, WHOLE) for number in range(3)]


def search(
    seconds: Callable[[Constrained], float | None], most: int = 1000, until: float = math.inf
) -> ConstraintSearch:
    def price(constrained: Constrained) -> StepCost | None:
        found = seconds(constrained)
        return None if found is None else StepCost(found, 1.0)

    found = ConstraintSearch(AXES, price, lambda cost: (cost.seconds, cost.bytes), until, most)
    found.run(SITES)
    return found


def test_the_constraint_that_gains_is_found_alone() -> None:
    found = search(lambda constrained: 1.0 if constrained.get(1) == ALONG_Y else 2.0)
    assert found.best == {1: ALONG_Y}
    assert found.cost == StepCost(1.0, 1.0)


def test_several_that_gain_together_alone_stay() -> None:
    found = search(lambda constrained: 1.0 if constrained.get(0) == constrained.get(2) == ALONG_X else 2.0)
    assert found.best == {0: ALONG_X, 2: ALONG_X}


def test_what_others_are_held_for_is_found() -> None:
    """A value is to be along `y`, and another, which has `x`, is to stay so."""
    sites = [ConstrainableValue(0, (4, 4), "f32", 64.0, WHOLE), ConstrainableValue(1, (4, 8), "f32", 128.0, ALONG_X)]
    found = ConstraintSearch(
        AXES,
        lambda constrained: StepCost(1.0 if constrained == {0: ALONG_Y, 1: ALONG_X} else 2.0, 1.0),
        lambda cost: (cost.seconds, cost.bytes),
        math.inf,
        1000,
    )
    found.run(sites)
    assert found.best == {0: ALONG_Y, 1: ALONG_X}


def test_a_constraint_that_is_not_permitted_is_not_priced() -> None:
    priced: list[Constrained] = []

    def price(constrained: Constrained) -> StepCost:
        priced.append(constrained)
        return StepCost(1.0 if ALONG_Y in constrained.values() else 2.0, 1.0)

    def score(cost: StepCost) -> tuple[float, float]:
        return cost.seconds, cost.bytes

    found = ConstraintSearch(AXES, price, score, math.inf, 1000, permits=lambda dims: dims != ALONG_Y)
    found.run(SITES)
    assert found.best == {} and len(priced) > 1 and not any(ALONG_Y in one.values() for one in priced)


def test_no_constraint_is_kept_for_nearly_nothing() -> None:
    assert search(lambda constrained: 2.0 - 0.001 * len(constrained)).best == {}


def test_what_cannot_be_propagated_is_left_out() -> None:
    assert search(lambda constrained: None if constrained else 1.0).best == {}
    assert search(lambda constrained: None).best == {}


def test_it_ends_by_candidates_and_by_time() -> None:
    seen: list[Constrained] = []
    assert search(lambda constrained: seen.append(constrained) or 1.0, most=5).tries == 5 == len(seen)
    assert search(lambda constrained: 1.0, until=time.monotonic() - 1).tries == 1


def test_it_ends_where_nothing_gains_any_more() -> None:
    """Of hundreds of decisions only the first ones are tried; after a gain it tries for longer."""
    sites = [ConstrainableValue(number, (4 + number, 4), "f32", 64.0, WHOLE) for number in range(100)]

    def tries(gain: float) -> int:
        found = ConstraintSearch(
            AXES,
            lambda constrained: StepCost(2.0 - gain if constrained.get(2) == (("x",), ()) else 2.0, 1.0),
            lambda cost: (cost.seconds, cost.bytes),
            math.inf,
            1000,
        )
        found.run(sites)
        return found.tries

    assert 40 <= tries(0.0) <= 42
    assert 64 <= tries(1.0) <= 80


def test_axes_go_where_they_divide() -> None:
    assert all(len(dims[1]) == 0 for dims in changes((4, 3), WHOLE, dict(AXES)))
    assert (("x", "y"), ()) in list(changes((4, 3), ALONG_X, dict(AXES)))
    assert (("x", "y"), ()) not in list(changes((2, 3), ALONG_X, dict(AXES)))
