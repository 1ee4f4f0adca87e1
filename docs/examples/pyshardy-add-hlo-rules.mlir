func.func @main(%x: tensor<8x4xf32>) -> tensor<8x2xf32> {
  %0 = mhlo.sinh %x : tensor<8x4xf32>
  %values, %indices = mhlo.topk(%0, k = 2) : tensor<8x4xf32> -> (tensor<8x2xf32>, tensor<8x2xi32>)
  return %values : tensor<8x2xf32>
}
