"""What a user forbids is in no plan, and what cannot be forbidden is refused."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pyshardy
from pyshardy.errors import UsageError

TEXT = """
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%x: tensor<4096x512xf32> loc("x"), %w: tensor<512x2048xf32> loc("params['w']"),
                %v: tensor<2048x512xf32> loc("params['v']"), %b: tensor<2048xf32> loc("params['b']"))
    -> tensor<4096x512xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<4096x512xf32>, tensor<512x2048xf32>) -> tensor<4096x2048xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<2048xf32>) -> tensor<4096x2048xf32>
  %2 = stablehlo.add %0, %1 : tensor<4096x2048xf32>
  %3 = stablehlo.dot_general %2, %v, contracting_dims = [1] x [0]
    : (tensor<4096x2048xf32>, tensor<2048x512xf32>) -> tensor<4096x512xf32>
  return %3 : tensor<4096x512xf32>
}
"""


def axes(**options: Any) -> dict[str, set[str]]:
    """The axes of each input in a plan."""
    plan = pyshardy.search(TEXT, hardware="v5e", candidates=120, constraints=False, memory=30e6, **options)
    return {name: {axis.name for dim in spec.dims for axis in dim.axes} for name, spec in plan.specs.items()}


def test_a_forbidden_axis_is_in_no_plan() -> None:
    free, bound = axes(), axes(forbid={"params": "data", "x": ["model"]})
    assert any("data" in used for name, used in free.items() if name.startswith("params")) or "model" in free["x"]
    assert not any("data" in used for name, used in bound.items() if name.startswith("params"))
    assert "model" not in bound["x"]


def test_all_axes_can_be_forbidden() -> None:
    found = axes(forbid={"params['w']": "*"})
    assert found["params['w']"] == set() and any(found.values())


def test_small_inputs_stay_whole() -> None:
    found = axes(whole_below=1 << 20)
    assert found["params['b']"] == set() and any(found.values())


@pytest.mark.parametrize("constraints", [False, True])
def test_no_input_is_split_along_more_axes_than_allowed(constraints: bool) -> None:
    options = {"hardware": "v5e", "candidates": 120, "constraints": constraints, "memory": 40e6}
    free, bound = (pyshardy.search(TEXT, axes_at_most=most, **options) for most in (None, 1))
    most = [
        max(sum(len(dim.axes) for dim in spec.dims) for name, spec in plan.specs.items() if name != "result")
        for plan in (free, bound)
    ]
    assert most == [2, 1]
    assert all(sum(map(len, one.dims)) <= 1 for one in bound.constraints)


@pytest.mark.parametrize("options", [{"forbid": {"x": "data"}}, {"whole_below": 1 << 30}])
def test_a_partitioner_cannot_give_what_is_forbidden(options: dict[str, Any]) -> None:
    def partitioner(task: pyshardy.SearchTask) -> dict[str, Any]:
        return {"x": (("data",), ())}

    with pytest.raises(UsageError, match="got .* for x, needed axes that the options of the search leave to it"):
        axes(partitioner=partitioner, **options)
    assert "data" in axes(partitioner=partitioner, forbid={"x": "model"})["x"]


def test_a_constraint_has_no_more_axes_than_allowed_either() -> None:
    def predict(w: Any, x: Any) -> Any:
        hidden = jnp.tanh(x @ w)
        return hidden * 2

    def partitioner(task: pyshardy.SearchTask) -> dict[str, Any]:
        return {task.values[0].name: (("data",), ("model",))}

    arrays = (jax.ShapeDtypeStruct((512, 2048), "float32"), jax.ShapeDtypeStruct((4096, 512), "float32"))
    options = {"mesh": {"data": 2, "model": 4}, "hardware": "v5e", "partitioner": partitioner}
    with pytest.raises(
        UsageError, match="got .* for `hidden` .* needed axes that the options of the search leave to it"
    ):
        pyshardy.search(predict, *arrays, axes_at_most=1, **options)
    assert pyshardy.search(predict, *arrays, axes_at_most=2, **options).fits


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"forbid": {"params": "dta"}},
            "got the axis 'dta', which 'params' may not have, needed axes of the mesh: data",
        ),
        ({"forbid": {"nothing": "data"}}, "got 'nothing', which matches no input or output"),
        ({"forbid": ["data"]}, "got forbid=['data'], needed axes by names of inputs"),
        ({"goal": "speed"}, "got goal='speed', needed 'time' or 'memory'"),
        ({"whole_below": -1}, "got whole_below=-1, needed bytes, 0 or more"),
        ({"axes_at_most": 0}, "got axes_at_most=0, needed a number of mesh axes from 1"),
        ({"axes_at_most": True}, "got axes_at_most=True, needed a number of mesh axes from 1"),
        ({"whole_below": "1MiB"}, "got whole_below='1MiB', needed bytes, 0 or more"),
    ],
)
def test_what_cannot_be_forbidden_is_refused(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(UsageError) as raised:
        pyshardy.search(TEXT, **options)
    assert expected in str(raised.value)
