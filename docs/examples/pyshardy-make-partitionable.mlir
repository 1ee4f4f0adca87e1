sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %values, %indices = chlo.top_k(%a, k = 2) {sdy.sharding = #sdy.sharding_per_value<
      [<@mesh, [{"x"}, {}]>, <@mesh, [{"x"}, {}]>]>} : tensor<8x8xf32> -> (tensor<8x2xf32>, tensor<8x2xi32>)
  return %values : tensor<8x2xf32>
}
