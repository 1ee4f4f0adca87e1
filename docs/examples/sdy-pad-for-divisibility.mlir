sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<7xf32>, %zero: tensor<f32>) -> tensor<f32> {
  %0 = sdy.all_slice [{"a"}] %x out_sharding=<@mesh, [{"a"}]> : tensor<7xf32>
  %1 = stablehlo.exponential %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<7xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [], unreduced={"a"}>]>} : (tensor<7xf32>, tensor<f32>) -> tensor<f32>
  %3 = sdy.all_reduce {"a"} %2 out_sharding=<@mesh, []> : tensor<f32>
  return %3 : tensor<f32>
}
