"""Plans for the best of several versions of a program: over other meshes, trained in other ways."""

from __future__ import annotations

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pyshardy
from pyshardy.errors import UsageError
from pyshardy.results.plan import plan_from_json
from support.steps import descent

S = jax.ShapeDtypeStruct
LAYERS, WIDTH, BATCH = 8, 256, 4096
ARGUMENTS = (
    {"up": S((LAYERS, WIDTH, 1024), "bfloat16"), "down": S((LAYERS, 1024, WIDTH), "bfloat16")},
    S((BATCH, WIDTH), "bfloat16"),
)


def loss(params: Any, x: Any) -> Any:
    def layer(x: Any, w: Any) -> tuple[Any, None]:
        return x + jax.nn.gelu(x @ w["up"]) @ w["down"], None

    x, _ = jax.lax.scan(layer, x, params)
    return jnp.mean(x.astype(jnp.float32) ** 2)


step = jax.jit(descent(loss))


def test_what_does_not_fit_as_it_is_written_fits_in_another_way() -> None:
    mesh = {"data": 4}
    small = pyshardy.search(step, *ARGUMENTS, mesh=mesh, hardware="h100", candidates=20, goal="memory")
    memory = 0.6 * small.peak_bytes
    plan = pyshardy.search(
        step, *ARGUMENTS, mesh=mesh, hardware="h100", memory=memory, candidates=20, constraints=False,
        remat="nothing_saveable", microbatches=[2, 4],
    )  # fmt: skip
    rows = {row.name: row for row in plan.summary.ways}
    assert len(rows) == 6 and rows["as written"].bytes > rows["4 micro-batches, remat nothing_saveable"].bytes
    assert not rows["as written"].fits and plan.fits and plan.summary.way == plan.summary.ways[0].name != "as written"
    assert any("jax.checkpoint" in note or "micro-batches" in note for note in plan.notes)
    assert f"the plan is for: {plan.summary.way}" in " ".join(str(plan).split())
    assert plan_from_json(plan.to_json()).summary == plan.summary
    cost = pyshardy.cost(plan.apply(), "h100")
    assert (cost.step_seconds, cost.peak_bytes) == (plan.step_seconds, plan.peak_bytes)


def test_the_meshes_are_told_beside_the_plan() -> None:
    plan = pyshardy.search(step, *ARGUMENTS, devices=4, hardware="h100", candidates=10, constraints=False)
    names = [row.name for row in plan.summary.ways]
    assert sorted(names) == ["mesh data=1, model=4", "mesh data=2, model=2", "mesh data=4"]
    assert plan.summary.way == names[0] and dict(plan.summary.mesh) == plan.mesh


def test_the_mesh_is_chosen_before_the_way_to_train() -> None:
    plan = pyshardy.search(
        step, *ARGUMENTS, devices=4, hardware="h100", candidates=10, constraints=False, microbatches=2
    )
    assert {row.name for row in plan.summary.ways} == {"as written", "2 micro-batches"}
    assert sum(size for size in plan.mesh.values()) in (4, 5)


@pytest.mark.parametrize(
    ("keywords", "needed"),
    [
        ({"microbatches": 2.5}, "got microbatches=2.5, needed one, or several in a list"),
        ({"microbatches": [2.5]}, "got microbatches=2.5, needed a number from 1"),
        ({"microbatches": 3}, "3 micro-batches of a batch of 4096, needed a divisor of 4096"),
        ({"remat": ["all"]}, "got remat='all', needed a policy of jax.checkpoint_policies"),
    ],
)
def test_ways_that_do_not_exist_are_refused(keywords: Any, needed: str) -> None:
    with pytest.raises(UsageError, match=needed):
        pyshardy.search(step, *ARGUMENTS, mesh={"data": 4}, candidates=10, **keywords)


def test_a_program_that_is_loaded_cannot_train_otherwise() -> None:
    module = pyshardy.load(step, *ARGUMENTS, mesh={"data": 4})
    with pytest.raises(UsageError, match="needed a function and its arguments"):
        pyshardy.search(module, microbatches=2)


def test_of_several_numbers_of_chips_the_goal_chooses_one() -> None:
    large = (ARGUMENTS[0], S((64 * BATCH, WIDTH), "bfloat16"))
    plans = {
        goal: pyshardy.search(
            step, *large, devices=[2, 8], hardware="h100", candidates=10, constraints=False, goal=goal
        )
        for goal in ("time", "chip-seconds")
    }
    for goal, plan in plans.items():
        rows = plan.summary.ways
        assert {row.devices for row in rows} == {2, 8} and prod(plan.mesh.values()) == rows[0].devices
        price = {row.name: row.seconds * (row.devices if goal == "chip-seconds" else 1) for row in rows if row.fits}
        assert price[rows[0].name] <= 1.01 * min(price.values())
    assert plans["time"].summary.ways[0].devices == 8 and plans["chip-seconds"].summary.ways[0].devices == 2
    text = str(plans["chip-seconds"])
    assert "chip-seconds" in text and "goal: chip-seconds" in text
    assert plan_from_json(plans["time"].to_json()).summary == plans["time"].summary


@pytest.mark.parametrize("devices", [[], [0], True, 2.5])
def test_numbers_of_chips_that_do_not_exist_are_refused(devices: Any) -> None:
    with pytest.raises(UsageError, match="got devices="):
        pyshardy.search(step, *ARGUMENTS, devices=devices, hardware="h100")
