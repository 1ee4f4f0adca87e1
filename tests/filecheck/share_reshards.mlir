// RUN: sdy_opt %s -pyshardy-share-reshards | FileCheck %s

// CHECK: %[[SHARED:.*]] = sdy.reshard %arg0 <@mesh, [{}, {"x"}]>
// CHECK-NEXT: stablehlo.negate %[[SHARED]]
// CHECK-NEXT: stablehlo.abs %[[SHARED]]
// CHECK-NEXT: return
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = sdy.reshard %a <@mesh, [{}, {"x"}]> : tensor<8x8xf32>
  %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : tensor<8x8xf32>
  %2 = sdy.reshard %a <@mesh, [{}, {"x"}]> : tensor<8x8xf32>
  %3 = stablehlo.abs %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : tensor<8x8xf32>
  return %1, %3 : tensor<8x8xf32>, tensor<8x8xf32>
}
