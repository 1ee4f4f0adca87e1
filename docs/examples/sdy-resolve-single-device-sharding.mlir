sdy.mesh @mesh = <["a"=2]>
sdy.mesh @device = <[], device_ids=[1]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.reshard %x <@device, []> : tensor<8xf32>
  %1 = stablehlo.custom_call @f(%0) {sdy.sharding = #sdy.sharding_per_value<[<@device, []>]>} : (tensor<8xf32>) -> tensor<8xf32>
  %2 = sdy.reshard %1 <@mesh, [{}]> : tensor<8xf32>
  return %2 : tensor<8xf32>
}
