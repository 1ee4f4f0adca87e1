sdy.mesh @mesh = <["x"=2]>
func.func private @xla.sdy.manual_computation_body.1(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @Sharding(%x) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
      : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%0)
      {mhlo.frontend_attributes = {xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22}>"}}
      : (tensor<8xf32>) -> tensor<4xf32>
  %2 = func.call @xla.sdy.manual_computation_body.1(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%2)
      {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<4xf32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}
