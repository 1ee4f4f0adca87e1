func.func @main(%x: tensor<8x4xf32>) -> tensor<4x8xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
  %1 = stablehlo.multiply %0, %x : tensor<8x4xf32>
  %2 = stablehlo.add %0, %1 : tensor<8x4xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}
