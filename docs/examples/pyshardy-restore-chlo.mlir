func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = mhlo.erf %x : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
