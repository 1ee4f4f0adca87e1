func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %y : tensor<8xf32>
  %1 = func.call @twice(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = stablehlo.subtract %1, %0 : tensor<8xf32>
  return %2 : tensor<8xf32>
}
func.func private @twice(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.add %x, %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
