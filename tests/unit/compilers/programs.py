"""Small programs to ask a compiler about."""

REPLICATED = """
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func public @step(%u: tensor<64x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}, {"x"}]>} loc("u"),
                %v: tensor<64x64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}, {"x"}]>} loc("v"),
                %w: tensor<64x64x64xf32> loc("w"))
    -> (tensor<64x64x64xf32> {jax.result_info = "result"}) {
  %0 = stablehlo.multiply %u, %v : tensor<64x64x64xf32> loc("jit(step)/mul"("model.py":3:8))
  %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"x", "y"}, {}]> : tensor<64x64x64xf32> loc("jit(step)/sharding_constraint"("model.py":4:8))
  %2 = stablehlo.add %w, %1 : tensor<64x64x64xf32> loc("jit(step)/add"("model.py":5:8))
  return %2 : tensor<64x64x64xf32>
}
"""
"""XLA cannot go from the sharding of the product to that of the constraint, and replicates it."""
SUMMED = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%a init: %0) applies stablehlo.add across dimensions = [0]
    : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""
"""It needs one sum over both devices."""
