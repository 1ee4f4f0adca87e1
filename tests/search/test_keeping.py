"""What a search keeps: the constraints of the program, shardings that it has, and shardings that the caller gives."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as JaxSpec
from search.test_constraints import constraints_of
from search.truth import jax_mesh

import pyshardy
from pyshardy import PartitionSpec as Spec
from pyshardy import UsageError
from pyshardy.frontend.interface import input_tensors, output_tensors
from pyshardy.ir.named_values import named_values

MESH = {"data": 2, "model": 4}
UP, DOWN = (jax.ShapeDtypeStruct(shape, "float32") for shape in ((1024, 4096), (4096, 1024)))
PARAMS, X = {"up": UP, "down": DOWN}, jax.ShapeDtypeStruct((8192, 1024), "float32")


def predict(params: Any, x: Any) -> Any:
    return jnp.tanh(x @ params["up"]) @ params["down"]


def descend(params: Any, x: Any) -> Any:
    def loss(params: Any) -> Any:
        hidden = jnp.tanh(x @ params["up"])
        hidden = jax.lax.with_sharding_constraint(hidden, JaxSpec(None, "model"))
        y = hidden @ params["down"]
        return jnp.mean(y**2)

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


def searched(keep: Any = True, **options: Any) -> pyshardy.Plan:
    options = {"mesh": MESH, "candidates": 24, "budget_s": 600, "hardware": "h100", **options}
    return pyshardy.search(predict, PARAMS, X, keep=keep, **options)


def shardings(module: pyshardy.Module) -> dict[str, str]:
    ports = (*input_tensors(module.root), *output_tensors(module.root))
    return {port.name: str(port.sharding) for port in ports}


@pytest.mark.parametrize("keep", [True, False])
def test_constraints_of_the_program_are_kept_and_none_is_put_beside_them(keep: bool) -> None:
    with jax.set_mesh(jax_mesh()):
        module = pyshardy.load(descend, PARAMS, X, mesh=jax_mesh())
    mine = '<@mesh, [{}, {"model"}]>'
    assert {sharding for _, sharding in constraints_of(module)} == {mine}
    assert all(one.name != "hidden" for one in named_values(module.root))
    plan = pyshardy.search(module, hardware="h100", candidates=40, budget_s=600, keep=keep)
    kept = constraints_of(plan.apply())
    assert kept["tensor<8192x4096xf32>", mine] == constraints_of(module).total() == 2
    assert all(one.name != "hidden" for one in plan.constraints)


def test_shardings_that_the_caller_gives_are_those_of_the_plan(tmp_path: Any) -> None:
    plan = searched({"x": JaxSpec(None, "model"), "params['up']": [[], ["data"]], "result": Spec("data")})
    wanted = {
        "x": '<@mesh, [{}, {"model"}]>',
        "params['up']": '<@mesh, [{}, {"data"}]>',
        "result": '<@mesh, [{"data"}, {}]>',
    }
    assert wanted.items() <= shardings(plan.apply()).items()
    assert plan.specs["x"] == Spec(None, "model") and plan.specs["result"] == Spec("data", None)
    assert plan.in_shardings[1].spec == JaxSpec(None, "model")
    assert pyshardy.cost(plan.apply(), "h100").step_seconds == plan.step_seconds >= searched().step_seconds
    plan.save(tmp_path / "plan.json")
    fresh = pyshardy.load(predict, PARAMS, X, mesh=MESH)
    assert shardings(pyshardy.load_plan(tmp_path / "plan.json").apply(fresh)) == shardings(plan.apply())


def test_given_shardings_replace_those_that_there_are() -> None:
    module = pyshardy.load(predict, PARAMS, X, mesh=MESH).annotate({"x": "model", "params['up']": "data"})
    plan = pyshardy.search(module, hardware="h100", candidates=24, budget_s=600, keep={"x": Spec("data")})
    found = shardings(plan.apply())
    assert found["x"] == '<@mesh, [{"data"}, {}]>' and "params['up']" in plan.specs
    both = pyshardy.search(module, hardware="h100", candidates=24, budget_s=600, keep={"params": Spec("data")})
    assert shardings(both.apply())["params['up']"] == shardings(both.apply())["params['down']"]


def test_a_mesh_without_the_axes_of_what_is_kept_is_not_chosen() -> None:
    plan = searched({"x": Spec("model")}, mesh=None, devices=4, budget_s=60)
    assert "model" in plan.mesh and plan.specs["x"] == Spec("model", None)
    with pytest.raises(UsageError, match="nothing"):
        searched({"x": Spec("nothing")}, mesh=None, devices=4)


@pytest.mark.parametrize(
    "limits", [{"keep": {"x": Spec(), "params": Spec()}}, {"keep": False, "forbid": {"x": "*", "params": "*"}}]
)
def test_the_program_as_it_was_given_is_not_the_plan_where_it_lacks_what_the_caller_asks_for(limits: Any) -> None:
    with jax.set_mesh(jax_mesh()):
        module = pyshardy.load(descend, PARAMS, X, mesh=jax_mesh()).annotate({"x": "data"})
    plan = pyshardy.search(module, hardware="h100", candidates=10, budget_s=600, constraints=False, **limits)
    assert pyshardy.cost(module, "h100").step_seconds < plan.step_seconds  # it is better, and is not asked for
    found = shardings(plan.apply())
    assert {found["x"], found["params['up']"], found["params['down']"]} == {"<@mesh, [{}, {}]>"}


@pytest.mark.parametrize(
    "keep, message",
    [
        ({"z": Spec("data")}, "'z', which matches no input or output"),
        ({"x": Spec("nothing")}, "axes of data, model"),
        ({"x": [["data"], ["data"]]}, "each once"),
        ({"x": "data"}, "got 'data' for x"),
        ({"x": Spec("data", Spec.UNCONSTRAINED)}, "keeping a sharding in a search"),
        ({"x": Spec(None, None, "data")}, r"divide \[8192, 1024\]"),
        (3, "got keep=3, needed True, False"),
        ("x", r'try: keep=\["x"\]'),
    ],
)
def test_what_cannot_be_kept_is_refused(keep: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        searched(keep)
