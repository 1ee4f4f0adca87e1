sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<6x7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
  return
}
