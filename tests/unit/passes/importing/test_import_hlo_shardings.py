"""GSPMD's groups, which JAX's `shard_alike` makes."""

from __future__ import annotations

import pyshardy

GROUPED = """
func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"}, %y: tensor<8x8xf32>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{unknown shard_as 5}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.custom_call @Sharding(%y) {mhlo.sharding = "{unknown shard_as 5}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}"""  # noqa: E501


def test_tensors_of_one_group_are_sharded_alike() -> None:
    result = pyshardy.propagate(pyshardy.load(GROUPED))
    assert [str(port.sharding) for port in result.outputs] == ['<@mesh, [{"axis_0"}, {}]>'] * 2
    alone = pyshardy.propagate(pyshardy.load(GROUPED.replace("shard_as 5", "shard_as 6", 1)))
    assert [str(port.sharding) for port in alone.outputs] == ['<@mesh, [{"axis_0"}, {}]>', "None"]


def test_a_result_that_repeats_a_constraint_leaves_open_what_that_does() -> None:
    text = """
    func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[1,8]<=[8]}"})
        -> (tensor<8x8xf32> {mhlo.sharding = "{replicated}"}) {
      %0 = stablehlo.custom_call @Sharding(%x) {backend_config = "unspecified_dims=[1]", mhlo.sharding = "{replicated}"}
          : (tensor<8x8xf32>) -> tensor<8x8xf32>
      return %0 : tensor<8x8xf32>
    }"""
    assert str(pyshardy.propagate(pyshardy.load(text)).outputs[0].sharding) == '<@mesh, [{}, {"axis_0"}]>'
    closed = text.replace("unspecified_dims=[1]", "")
    assert str(pyshardy.propagate(pyshardy.load(closed)).outputs[0].sharding) == "<@mesh, [{}, {}]>"
