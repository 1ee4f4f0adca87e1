"""Other dimensions for the axes of what a step does not return."""

from __future__ import annotations

import pyshardy
from pyshardy.checkup.kinds.batches import batch_cures
from pyshardy.ir.shardings import module_meshes

ROLLOUT = """
sdy.mesh @mesh = <["x"=8]>
func.func @main(
    %0: tensor<64x512x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>} loc("roll['obs']"),
    %1: tensor<64x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>} loc("roll['rewards']"),
    %2: tensor<512x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>} loc("carry"))
    -> tensor<512x32xf32> {
  %3 = stablehlo.constant dense<0.0> : tensor<f32>
  %4 = stablehlo.reduce(%0 init: %3) applies stablehlo.add across dimensions = [0]
    : (tensor<64x512x32xf32>, tensor<f32>) -> tensor<512x32xf32>
  %5 = stablehlo.reduce(%1 init: %3) applies stablehlo.add across dimensions = [0]
    : (tensor<64x512xf32>, tensor<f32>) -> tensor<512xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<512xf32>) -> tensor<512x32xf32>
  %7 = stablehlo.multiply %4, %6 : tensor<512x32xf32>
  %8 = stablehlo.add %7, %2 : tensor<512x32xf32>
  return %8 : tensor<512x32xf32>
}"""


def test_axes_are_moved_of_inputs_that_are_split_along_one_size() -> None:
    """A rollout has time first, and what comes from its first step has not."""
    module = pyshardy.load(ROLLOUT)
    mesh = next(one for one in module_meshes(module.root).values() if one.axes)
    moved = [one for one in batch_cures(module, "mesh", mesh) if "is better off with" in one.what]
    assert {one.text: one.inputs for one in moved} == {
        "annotate `roll['obs']` and `roll['rewards']` as P(None, 'x')": {0, 1},
        "annotate `carry` as P(None, 'x')": {2},
    }
    first = pyshardy.doctor(module, hardware="h100").findings[0]
    assert first.cure == "annotate `roll['obs']` and `roll['rewards']` as P(None, 'x')" and not first.is_design
