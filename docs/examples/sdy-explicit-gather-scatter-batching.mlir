func.func @main(%x: tensor<4x8xf32>, %columns: tensor<4x1xi32>) -> tensor<4xf32> {
  %rows = stablehlo.iota dim = 0 : tensor<4x1xi32>
  %indices = stablehlo.concatenate %rows, %columns, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %0 = "stablehlo.gather"(%x, %indices) {dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>} : (tensor<4x8xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
