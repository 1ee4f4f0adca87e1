"""Partitioners that users write: what they may return, in a search, as the registered one, and in the pass."""

from __future__ import annotations

from typing import Any

import pytest
from search import blocks
from search.test_constraints import constraints_of, megatron

import pyshardy
from pyshardy import PartitionSpec as Spec
from pyshardy import UsageError

MESH = {"data": 2, "model": 4}
MIXED = "`mixed` of `block`"
BY_USER = "what the registered partitioner found"
Annotations = dict[str, Any]


def unsharded() -> pyshardy.Module:
    return pyshardy.load(blocks.descent(blocks.loss), *blocks.layers(), mesh=MESH, donate_argnums=0)


def found_by(answer: Annotations, module: pyshardy.Module | None = None, **options: Any) -> pyshardy.Plan:
    module = megatron(MESH, blocks.layers()) if module is None else module
    options = {"hardware": "h100", "candidates": 8, "budget_s": 600, **options}
    return pyshardy.search(module, partitioner=lambda task: answer, **options)


def row_of(plan: pyshardy.Plan, name: str) -> Any:
    return next(row for row in plan.summary.rows if row.name == name)


def test_what_a_partitioner_constrains_is_partitioned_and_priced() -> None:
    plan = found_by({MIXED: Spec(("data", "model"))})
    given, own = row_of(plan, "as it was given"), row_of(plan, BY_USER)
    assert own.is_exact and own.seconds < 0.95 * given.seconds
    assert [(one.value, one.spec) for one in plan.constraints] == [(MIXED, Spec(("data", "model"), None, None))]
    assert plan.step_seconds <= own.seconds
    assert pyshardy.cost(plan.apply(), "h100").step_seconds == plan.step_seconds
    mesh = 'jax.sharding.AbstractMesh((2, 4), ("data", "model"), (jax.sharding.AxisType.Auto,) * 2)'
    sharding = f'jax.sharding.NamedSharding({mesh}, jax.sharding.PartitionSpec(("data", "model")))'
    assert f"jax.lax.with_sharding_constraint(mixed, {sharding})" in plan.patch()


def test_a_bad_constraint_is_told_and_is_not_the_plan() -> None:
    plan = found_by({MIXED: Spec("data")})
    assert row_of(plan, BY_USER).seconds > row_of(plan, "as it was given").seconds >= plan.step_seconds


def test_a_task_lists_values_and_prices_constraints() -> None:
    seen: dict[str, Any] = {}

    def look(task: pyshardy.SearchTask) -> Annotations:
        seen["values"], seen["plain"] = task.values, task.cost({})
        seen["costs"] = [task.cost({key: [["data", "model"]]}) for key in (MIXED, task.values[0].place)]
        seen["worse"] = task.cost({"blocks.py:17": [["data"]]})
        return {}

    plan = pyshardy.search(megatron(MESH, blocks.layers()), hardware="h100", partitioner=look, candidates=8)
    first = seen["values"][0]
    assert (first.name, first.shape, first.element, first.count) == (MIXED, (16, 1024, 1024), "bf16", 2)
    assert first.bytes == 2 * 16 * 1024 * 1024 and first.place.endswith("blocks.py:17")
    assert [one.name for one in seen["values"]][1:3] == ["`x` of `block`", "`hidden` of `block`"]
    assert seen["costs"][0] == seen["costs"][1] and seen["costs"][0].seconds < seen["plain"].seconds
    assert seen["worse"].seconds > seen["plain"].seconds
    assert BY_USER in {row.name for row in plan.summary.rows}


def test_a_plan_is_what_a_partitioner_may_return() -> None:
    """Our search answers in the same form: what it found is found again by a function that returns it."""
    plan = pyshardy.search(unsharded(), hardware="v5e", candidates=10, budget_s=600, constraints=False)
    again = found_by(plan.annotations, unsharded(), hardware="v5e", constraints=False)
    assert row_of(again, BY_USER).seconds == pytest.approx(plan.step_seconds)
    kept = found_by({MIXED: Spec(("data", "model"))})
    assert list(kept.annotations) == [kept.constraints[0].key]
    assert row_of(found_by(kept.annotations), BY_USER).seconds == kept.step_seconds


@pytest.mark.parametrize(
    "answer, messages",
    [
        (
            {"`mixd` of `block`": Spec("data")},
            ["names no input and no intermediate value", f"{MIXED} at ", "task.values"],
        ),
        ({"blocks.py:17": Spec(None, None, None, "data")}, ["divide [16, 1024, 1024]"]),
        ({"blocks.py:17": Spec("nothing")}, ["axes of data, model", "nothing"]),
        ({3: Spec("data")}, ["got 3, which names no input"]),
    ],
)
def test_wrong_constraints_are_refused(answer: Annotations, messages: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        found_by(answer)
    assert all(message in str(caught.value) for message in messages), caught.value


def test_a_name_that_two_values_have_is_refused() -> None:
    def step(x: Any) -> Any:
        x = x @ x
        x = x @ x.T
        return x @ x

    shape = blocks.jax.ShapeDtypeStruct((512, 512), "float32")
    module = pyshardy.load(step, shape, mesh=MESH)
    with pytest.raises(UsageError, match="which 2 values are called, needed one of '`x` of `.*step`"):
        found_by({"`x` of `test_a_name_that_two_values_have_is_refused.<locals>.step`": Spec("data")}, module)


def test_without_constraints_or_lines_it_is_said_why_there_are_no_values() -> None:
    with pytest.raises(UsageError, match="constraints=False leaves intermediate values alone"):
        found_by({MIXED: Spec("data")}, constraints=False)
    with pytest.raises(UsageError, match="lines of Python"):
        found_by({MIXED: Spec("data")}, pyshardy.load(unsharded().text()))


def test_the_pass_writes_the_constraints_of_a_registered_partitioner() -> None:
    def mine(task: pyshardy.SearchTask) -> Annotations:
        split, plain = task.cost({"x": [["data"]], MIXED: [["data"]]}), task.cost({"x": [["data"]]})
        assert split is not None and plain is not None
        return {"x": [["data"]], task.values[0].key: [["data"], [], ["model"]]}

    module = unsharded()
    pyshardy.register_partitioner(mine)
    try:
        found = pyshardy.run_pipeline(module, "pyshardy-auto-partition{hardware=h100}")
    finally:
        pyshardy.register_partitioner(None)
    constraints = constraints_of(found)
    assert {sharding for _, sharding in constraints} == {'<@mesh, [{"data"}, {}, {"model"}]>'}
    assert constraints.total() == 4, "of two layers, forward and backward"
    assert constraints_of(pyshardy.run_pipeline(module, "pyshardy-auto-partition{candidates=3}")).total() == 0
