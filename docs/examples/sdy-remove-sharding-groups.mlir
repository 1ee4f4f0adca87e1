func.func @main(%x: tensor<8xf32>) {
  sdy.sharding_group %x group_id=0 : tensor<8xf32>
  return
}
