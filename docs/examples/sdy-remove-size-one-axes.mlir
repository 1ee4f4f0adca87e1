sdy.mesh @mesh = <["a"=2, "one"=1]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "one"}, {}]>}) {
  return
}
