// RUN: sdy_opt %s -split-input-file -verify-diagnostics -sdy-resolve-permutation-factors='enable-halo-exchange=true exchange-windows=true'

sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<4xf32>) -> tensor<8xf32> {
  %i = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-error@+1 {{'stablehlo.select_and_scatter' op has windows of -9223372036854775808 elements, needed at least one each way}}
  %0 = "stablehlo.select_and_scatter"(%a, %b, %i) <{window_dimensions = array<i64: 9223372036854775808>, window_strides = array<i64: 2>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %s : tensor<i1>
  }, {
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
