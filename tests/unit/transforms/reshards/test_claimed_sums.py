"""Results that are called partial although nothing makes them so count once."""

from __future__ import annotations

import numpy as np
import pytest

import pyshardy
from pyshardy import Module
from pyshardy.passes.pipeline import run_pipeline

PRODUCT = """sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<12xKxf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {A}]>},
    %b: tensor<Kx12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{A}, {}]>}) -> tensor<12x12xf32> {
  %0 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}], unreduced={"y"}>]>}
    : (tensor<12xKxf32>, tensor<Kx12xf32>) -> tensor<12x12xf32>
  %1 = sdy.all_reduce {"y"} %0 out_sharding=<@mesh, [{"x"}, {}]> : tensor<12x12xf32>
  return %1 : tensor<12x12xf32>
}"""


def product(size: int, axis: str) -> str:
    """A product that is called partial along "y", over a dimension that is sharded along an axis or not."""
    return PRODUCT.replace("K", str(size)).replace("{A}", f"{{{axis}}}")


@pytest.mark.parametrize(("size", "axis"), [(4, '"y"'), (4, ""), (3, '"y"')])
def test_what_is_complete_counts_once(size: int, axis: str) -> None:
    a, b = np.random.default_rng(0).normal(size=(2, 12, size)).astype(np.float32)
    (found,) = pyshardy.run(pyshardy.partition(product(size, axis), view="stablehlo"), a, b.T)
    np.testing.assert_allclose(found, a @ b.T, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("axis", "steps"), [('"y"', 0), ("", 1)])
def test_only_complete_results_are_resharded(axis: str, steps: int) -> None:
    passes = "sdy-populate-op-sharding-rules,pyshardy-make-partitionable"
    found = run_pipeline(Module.parse(product(4, axis)), passes).text()
    assert found.count('sdy.replicated_to_unreduced {"y"}') == steps
