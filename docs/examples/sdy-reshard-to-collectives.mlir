sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>}) -> tensor<16x16xf32> {
  %0 = sdy.reshard %x <@mesh, [{}, {"a"}]> : tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}
