"""Stories of collectives that several layers share."""

from __future__ import annotations

import pyshardy


def test_a_story_of_several_layers_names_the_weights_of_all() -> None:
    """The sentence is the same for both layers; what the axis was given to is not."""
    weight = 'tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}'
    layer = """
      %h{0} = stablehlo.dot_general {1}, %w{0}, contracting_dims = [1] x [0]
        : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32> loc("net/dot_general"("net.py":7:4))
      %t{0} = stablehlo.tanh %h{0} : tensor<32x64xf32> loc("net/tanh"("net.py":8:4))
      %s{0} = stablehlo.reduce(%t{0} init: %z) applies stablehlo.add across dimensions = [1]
        : (tensor<32x64xf32>, tensor<f32>) -> tensor<32xf32> loc("net/reduce_sum"("net.py":9:4))
      %b{0} = stablehlo.broadcast_in_dim %s{0}, dims = [0]
        : (tensor<32xf32>) -> tensor<32x64xf32> loc("net/broadcast"("net.py":9:4))
    """
    program = f"""
    sdy.mesh @mesh = <["model"=8]>
    func.func @main(%x: tensor<32x64xf32> loc("x"), %w0: {weight} loc("params['layers'][0]['w']"),
                    %w1: {weight} loc("params['layers'][1]['w']")) -> tensor<32x64xf32> {{
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      {layer.format(0, "%x")}
      {layer.format(1, "%b0")}
      return %b1 : tensor<32x64xf32>
    }}"""
    (story,) = pyshardy.partition(program).collectives
    assert story.times == 2 and "`reduce_sum` in `net` at net.py:9" in story.reason
    assert story.text.endswith("""There "model" was given to the input `params['layers'][*]['w']` on dimension 1.""")
