sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func public @main(%x: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}p0, {?}]>} loc("x"),
                       %w: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"data"}p1]>} loc("w"))
    -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("jit(f)/mlp/dot_general"("model.py":7:4))
  %1 = stablehlo.tanh %0 : tensor<64x64xf32> loc("jit(f)/mlp/tanh"("model.py":8:4))
  return %1 : tensor<64x64xf32>
}
