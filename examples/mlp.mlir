// A two-layer network: the batch is split over `data`, the hidden dimension of the first weight over `model`.
sdy.mesh @mesh = <["data"=4, "model"=2]>

func.func @main(
    %x: tensor<32x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x"),
    %w1: tensor<64x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>} loc("params['w1']"),
    %w2: tensor<256x64xf32> loc("params['w2']")) -> (tensor<32x64xf32> {jax.result_info = "result"}) {
  %0 = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x256xf32>) -> tensor<32x256xf32>
  %1 = stablehlo.tanh %0 : tensor<32x256xf32>
  %2 = stablehlo.dot_general %1, %w2, contracting_dims = [1] x [0] : (tensor<32x256xf32>, tensor<256x64xf32>) -> tensor<32x64xf32>
  return %2 : tensor<32x64xf32>
}
