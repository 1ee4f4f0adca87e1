"""The comparison with what people write, as compiled: their constraints, and a plan that is worse."""

from __future__ import annotations

import pytest
from search.compare import experts_for, load, with_specs
from search.experts import Expert
from search.written import ACTIVATIONS, Figures, Result, dims_of, roles_to_axes, table, written

import pyshardy
from pyshardy.ir.named_values import named_values

MESH = {"data": 2, "model": 4}
PEOPLE = Figures(1.0, 100, 1000)


@pytest.mark.parametrize(
    ("plan", "verdict"),
    [
        (Figures(1.04, 1, 1), "loss"),
        (Figures(0.96, 200, 2000), "win"),
        (Figures(1.02, 100, 960), "less memory"),
        (Figures(1.02, 100, 1000), "equal"),
    ],
)
def test_a_slower_plan_is_a_loss_and_one_that_needs_less_is_told(plan: Figures, verdict: str) -> None:
    found = Result("p", "v5e", 1.0, plan, PEOPLE, "Megatron")
    assert found.verdict == verdict and f"1 {verdict}" in table([found])


def test_constraints_follow_the_roles_of_dimensions() -> None:
    axes = {"b": ["data"], "s": ["model"], "t": ["model"]}
    assert dims_of("bs.", (8, 16, 4), axes, MESH) == (("data",), ("model",), ())
    assert dims_of("bst", (8, 16, 4), axes, MESH) == (("data",), (), ("model",))  # inside of a layer
    assert dims_of("bst", (8, 16, 3), axes, MESH) == (("data",), ("model",), ())
    assert dims_of("b", (3,), axes, MESH) == ((),)


def test_the_axes_of_roles_are_those_of_the_inputs() -> None:
    expert = Expert("Megatron + data", {"data[0]": (("data",), ())})
    ways = dict(roles_to_axes(expert, "transformer", MESH))
    assert ways["batch and tensors"] == {"b": ["data"], "t": ["model"], "e": ["model"]}
    assert ways["experts first"] == {"e": ["model"], "b": ["data"], "t": ["model"]}
    whole = Expert("data parallel", {"data[0]": (("data", "model"), ())})
    assert list(dict(roles_to_axes(whole, "transformer", MESH))) == ["the batch", "experts first"]


@pytest.mark.parametrize("program", ACTIVATIONS)
def test_every_role_is_of_a_value_of_the_program(program: str) -> None:
    values = {one.name: len(one.value.shape) for one in named_values(load(program, MESH).root)}
    assert {name: len(roles) for name, roles in ACTIVATIONS[program].items()}.items() <= values.items()


@pytest.mark.slow
def test_people_gain_by_constraints() -> None:
    ways = written("experts", MESH, "v5e")
    assert ways[0].seconds < min(way.seconds for way in ways if "constrained" not in way.name)
    module = load("experts", MESH)
    plain = {
        one.name: pyshardy.cost(with_specs(module, one.specs), "v5e") for one in experts_for("experts", module, MESH)
    }
    assert {way.name: way.seconds for way in ways if way.name in plain} == {
        name: cost.step_seconds for name, cost in plain.items() if cost.fits
    }
