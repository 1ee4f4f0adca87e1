sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = sdy.reshard %x <@mesh, [{}]> : tensor<8xf32>
  %1 = stablehlo.sine %0 : tensor<8xf32>
  %2 = sdy.reshard %x <@mesh, [{}]> : tensor<8xf32>
  %3 = stablehlo.cosine %2 : tensor<8xf32>
  return %1, %3 : tensor<8xf32>, tensor<8xf32>
}
