"""The plan of experts beside a plan, and what is changed."""

from __future__ import annotations

import jax
import pytest

import pyshardy
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.report.nearest import NearestExpert
from pyshardy.results.plan import plan_from_json
from pyshardy.searching.autopartition.objective import Objective
from pyshardy.searching.autopartition.registry import Answer
from pyshardy.searching.autopartition.space import with_dims
from pyshardy.searching.planning.nearest import expert_answers, nearest_expert
from pyshardy.searching.planning.options import SearchOptions
from pyshardy.searching.planning.search import Search

MESH = {"data": 4, "model": 2}
OPTIONS = SearchOptions(find_hardware("v5e"), None, None, CollectiveModel.FORMULA, Objective(1e12), 60.0, 24, 0)


def predict(params, x):
    for layer in params:
        hidden = jax.nn.relu(x @ layer["up"])
        x = x + hidden @ layer["down"]
    return x


LAYER = {"up": jax.ShapeDtypeStruct((512, 2048), "float32"), "down": jax.ShapeDtypeStruct((2048, 512), "float32")}
ARGUMENTS = [LAYER] * 3, jax.ShapeDtypeStruct((256, 512), "float32")


@pytest.fixture(scope="module")
def search() -> Search:
    found = Search(pyshardy.load(predict, *ARGUMENTS, mesh=MESH), OPTIONS, True, lambda text: None)
    found.run()
    return found


@pytest.mark.slow
def test_a_plan_of_experts_is_its_own_nearest(search: Search) -> None:
    experts = list(expert_answers(search))
    assert any(one.answer.constraints for one in experts) and any(not one.answer.constraints for one in experts)
    for one in experts[:: max(1, len(experts) // 5)]:
        found = nearest_expert(search, one.answer)
        assert found is not None and not found.changes and found.seconds <= one.row.seconds
        assert found.lines(one.row.seconds, one.row.bytes)[1] == "nothing is changed: it is the plan"


@pytest.mark.slow
def test_what_is_changed_is_said_for_inputs_and_values(search: Search) -> None:
    expert = next(one for one in expert_answers(search) if not one.answer.constraints)
    space = search.space
    x = next(number for number, group in enumerate(space.groups) if group.name == "x")
    other = ((), ("data",)) if expert.answer.assignment[x] != ((), ("data",)) else (("data",), ())
    value = next(number for number, one in enumerate(search.values) if one.name == "hidden")
    plan = Answer(with_dims(expert.answer.assignment, {x: other}), {value: ((), ("model",))})
    found = nearest_expert(search, plan)
    assert found is not None and len(found.changes) >= 2
    assert any(change.startswith("x: P(") for change in found.changes)
    assert "`hidden` of `predict`: P(None, 'model') instead of no constraint" in found.changes


def test_the_gain_is_that_of_both_estimates() -> None:
    expert = NearestExpert(
        "data over data", 0.02, 1e6, False, tuple(f"w{number}: P() instead of P('data')" for number in range(12))
    )
    lines = expert.lines(0.015, 1e6)
    assert "20.0 ms" in lines[0] and "does not fit" in lines[0] and "5.0 ms (25.0 %) less" in lines[1]
    assert lines[-1] == "  and 4 more changes" and len(lines) == 11
    assert "5.0 ms more, 1.0 KiB less" in expert.lines(0.025, 1e6 - 1024)[1]


@pytest.mark.slow
def test_a_plan_says_what_is_nearest_and_keeps_it_in_a_file() -> None:
    plan = pyshardy.search(predict, *ARGUMENTS, mesh=MESH, hardware="v5e", candidates=24, constraints=False)
    (nearest,) = plan.summary.nearest
    assert f"nearest plan of experts: {nearest.name}" in " ".join(str(plan).split())
    assert nearest.seconds >= plan.step_seconds
    assert plan_from_json(plan.to_json()).summary == plan.summary


@pytest.mark.slow
def test_the_plan_is_the_first_that_fits_in_time_against_memory() -> None:
    plan = pyshardy.search(predict, *ARGUMENTS, mesh=MESH, hardware="v5e", candidates=24)
    front = [row for row in plan.summary.front if row.fits]
    assert (front[0].seconds, front[0].bytes) == (plan.step_seconds, plan.peak_bytes)
    assert all(row.seconds > one.seconds and row.bytes < one.bytes for one, row in zip(front, front[1:]))
