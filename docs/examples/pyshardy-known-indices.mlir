sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x6x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}, {}]>}, %i: tensor<8x1xi32>) -> tensor<8x4xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<8x1xi32>
  %1 = stablehlo.concatenate %0, %i, dim = 1 : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
  %2 = "stablehlo.gather"(%x, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1, 4>}> : (tensor<8x6x4xf32>, tensor<8x2xi32>) -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}
