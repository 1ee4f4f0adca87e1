func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @used(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @used(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
func.func private @unused() {
  return
}
