"""A search of the program with its plan finds next to nothing: neither for its inputs nor for its constraints."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from search.compare import load
from search.models import PROGRAMS

import pyshardy
from pyshardy.searching.autopartition.objective import Objective

MOST_GAIN = 0.005
MESH = {"data": 2, "model": 4}


def example() -> pyshardy.Module:
    """The first program of docs/search.md."""

    def step(params: Any, x: Any, y: Any) -> Any:
        def loss(params: Any) -> Any:
            for w in params["layers"]:
                x_ = jnp.tanh(x @ w["up"]) @ w["down"]
            return jnp.mean((x_ - y) ** 2)

        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))

    up, down = (jax.ShapeDtypeStruct(shape, "float32") for shape in ((512, 2048), (2048, 512)))
    x = jax.ShapeDtypeStruct((4096, 512), "float32")
    return pyshardy.load(step, {"layers": [{"up": up, "down": down}] * 2}, x, x, mesh=MESH)


def long_context() -> pyshardy.Module:
    step, arguments, donated = PROGRAMS["prefill"](batch=1, length=16384)
    return pyshardy.load(jax.jit(step, donate_argnums=donated), *arguments, mesh=MESH, platform="tpu")


def gain(before: pyshardy.Plan, after: pyshardy.Plan) -> float:
    """The share by which the second plan is better: by time, with a little memory and communication."""
    weight = Objective(before.summary.limit).weight
    return 1 - weight(after.summary.final) / weight(before.summary.final)


@pytest.mark.parametrize("name", ["example", "mixture of experts", "long context"])
def test_a_second_search_finds_next_to_nothing(name: str) -> None:
    module = {"example": example, "mixture of experts": lambda: load("routed", MESH), "long context": long_context}[
        name
    ]()
    options: dict[str, Any] = {"hardware": "v5e", "candidates": 120, "budget_s": 600}
    plan = pyshardy.search(module, **options)
    is_better = Objective(plan.summary.limit).is_better
    assert not [row for row in plan.summary.rows if is_better(row, plan.summary.chosen)]
    assert all(reason.seconds >= -MOST_GAIN * plan.step_seconds for reason in plan.summary.reasons)
    assert plan.summary.reasons
    for keep in (True, False):
        again = pyshardy.search(plan.apply(module), **options, keep=keep)
        assert -1e-9 <= gain(plan, again) < MOST_GAIN


def test_a_second_search_of_a_plan_that_is_bad_finds_more() -> None:
    module = load("dense", MESH)
    bad = pyshardy.search(module, hardware="v5e", keep={"data": [["model"]]}, candidates=24)
    again = pyshardy.search(bad.apply(module), hardware="v5e", keep=False, candidates=120)
    assert gain(bad, again) > MOST_GAIN
