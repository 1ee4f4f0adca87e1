sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<2x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<2x3x2xf32> {
  %0 = sdy.reshard %x <@mesh, [{"a"}, {}]> : tensor<2x6xf32>
  %1 = stablehlo.reshape %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, jk])->([i, j, k]) {i=2, j=3, k=2}>} : (tensor<2x6xf32>) -> tensor<2x3x2xf32>
  %2 = sdy.reshard %1 <@mesh, [{}, {}, {}]> : tensor<2x3x2xf32>
  return %2 : tensor<2x3x2xf32>
}
