"""The warning about ops without a sharding rule."""

from __future__ import annotations

import pyshardy

PROGRAM = """
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>]
      manual_axes={MANUAL} (%arg: tensor<2x4xf32>) {
    %1 = stablehlo.custom_call @odd(%arg) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    sdy.return %1 : tensor<2x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""


def test_on_shards_no_rule_is_missing() -> None:
    assert pyshardy.propagate(PROGRAM.replace("MANUAL", '"x", "y"')).warnings == ()


def test_where_an_axis_is_left_to_propagation_one_is() -> None:
    (warning,) = pyshardy.propagate(PROGRAM.replace("MANUAL", '"x"')).warnings
    assert "no sharding rule is known for custom call @odd" in warning
