"""Another order of mesh axes has the price that the program has on that mesh, and is told only where it gains."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest

import pyshardy
from pyshardy.costing.mesh_order import MeshOrder

TEXT = """
sdy.mesh @mesh = <[{axes}]>
func.func @main(%x: tensor<8192x8192xbf16> {{sdy.sharding = #sdy.sharding<@mesh, [{{"data"}}, {{"model"}}]>}},
                %w: tensor<8192x4096xbf16> {{sdy.sharding = #sdy.sharding<@mesh, [{{"model"}}, {{}}]>}})
    -> tensor<8192x4096xbf16> {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<8192x8192xbf16>, tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16>
  return %0 : tensor<8192x4096xbf16>
}}"""


def cost(hardware: str = "h100", options: Any = None, **axes: int) -> pyshardy.Cost:
    text = TEXT.format(axes=", ".join(f'"{name}"={size}' for name, size in axes.items()))
    return pyshardy.cost(text, hardware, **(options or {}))


@pytest.mark.parametrize(
    ("hardware", "axes"),
    [
        ("h100", {"model": 8, "data": 8}),
        ("h100", {"model": 8, "data": 4}),
        ("h100", {"one": 1, "model": 8, "data": 2, "more": 2}),
        ("v5e", {"model": 16, "data": 32}),
    ],
)
def test_another_order_has_the_price_of_the_program_on_that_mesh(hardware: str, axes: dict[str, int]) -> None:
    given = cost(hardware, **axes)
    found = given.faster_order
    assert found is not None and sorted(found.axes) == sorted(axes.items()) and found.axes != tuple(axes.items())
    there = cost(hardware, **dict(found.axes))
    assert found.seconds == there.step_seconds < 0.95 * given.step_seconds
    assert there.faster_order is None


def test_the_step_of_a_wrong_mesh_is_another() -> None:
    """What the test above compares differs where axes are placed otherwise."""
    assert cost(model=8, data=4).step_seconds != cost(data=4, model=8).step_seconds


@pytest.mark.parametrize(
    ("axes", "options"),
    [
        ({"data": 8, "model": 8}, {}),
        ({"model": 4, "data": 2}, {}),  # one node
        ({"model": 8, "data": 8}, {"networks": {"data": "network", "model": "nvlink"}}),
        ({"data": 8, "model": 8}, {"networks": {"model": "network"}}),
    ],
    ids=["the best", "one network", "placed better", "placed worse"],
)
def test_no_order_is_told(axes: dict[str, int], options: dict[str, Any]) -> None:
    found = cost(options=options, **axes)
    assert (
        found.estimate.devices == prod(axes.values()) and found.faster_order is None and "make_mesh" not in str(found)
    )


def test_it_is_a_note() -> None:
    found = cost(model=8, data=4)
    assert isinstance(found.faster_order, MeshOrder)
    note = found.to_json()["notes"][-1]
    assert note.startswith("the last axes of a mesh get the fastest network, nvlink: a step takes ")
    assert note.endswith('with jax.make_mesh((4, 8), ("data", "model"))')
    assert "jax.make_mesh((4, 8)" in " ".join(str(found).split())
