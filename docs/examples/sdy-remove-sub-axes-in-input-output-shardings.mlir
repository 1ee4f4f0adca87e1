sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b":(1)2, ?}]>}) {
  return
}
