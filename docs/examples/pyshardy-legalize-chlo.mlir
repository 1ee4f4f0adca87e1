func.func @main(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = chlo.square %x : tensor<8x4xf32> -> tensor<8x4xf32>
  %1 = chlo.erf %x : tensor<8x4xf32> -> tensor<8x4xf32>
  %2 = chlo.tan %x : tensor<8x4xf32> -> tensor<8x4xf32>
  return %0, %1, %2 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}
