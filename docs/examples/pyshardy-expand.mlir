func.func @main(%x: tensor<1x4xf32>, %p: tensor<i1>) -> tensor<8x4xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.constant dense<2.0> : tensor<8x4xf32>
  %2 = stablehlo.select %p, %0, %1 : tensor<i1>, tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}
