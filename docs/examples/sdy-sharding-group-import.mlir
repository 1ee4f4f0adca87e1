func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) {
  sdy.sharding_group %x group_id=42 : tensor<8xf32>
  sdy.sharding_group %y group_id=42 : tensor<8xf32>
  sdy.sharding_group %y group_id=7 : tensor<8xf32>
  return
}
