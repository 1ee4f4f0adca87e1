// RUN: sdy_opt %s -verify-diagnostics -pyshardy-drop-op-shardings | FileCheck %s

// CHECK: func.func @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
// CHECK-NEXT: %0 = stablehlo.tanh %arg0 : tensor<8x4xf32>
// CHECK-NEXT: %1 = sdy.sharding_constraint %arg0 <@mesh, [{}, {"b"}]> : tensor<8x4xf32>
// CHECK-NEXT: return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
// CHECK-NEXT: }

sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  // expected-warning@+1 {{the shardings on 1 ops are ignored}}
  %0 = stablehlo.tanh %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"b"}]>]>} : tensor<8x4xf32>
  %1 = sdy.sharding_constraint %x <@mesh, [{}, {"b"}]> : tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}
