func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @sort_with_indices(%x) : (tensor<8xf32>) -> tuple<tensor<8xf32>, tensor<8xi32>>
  %1 = stablehlo.get_tuple_element %0[0] : (tuple<tensor<8xf32>, tensor<8xi32>>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
