// RUN: sdy_opt %s -sdy-op-priority-propagate='propagation-strategy=basic' | FileCheck %s
// RUN: sdy_opt %s -sdy-op-priority-propagate='conservative-propagation=true keep-sharding-rules=true' | FileCheck %s --check-prefix=CONSERVATIVE

sdy.mesh @mesh = <["p"=4, "q"=4]>
// CHECK-LABEL: func.func @options(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q"}, {?}]>}, %arg1: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q"}]>}) -> (tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>}, tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q":(1)2, ?}, {"q":(2)2, ?}]>})
// CHECK-NEXT: %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>}
// CHECK-NEXT: %1 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", "q":(1)2, ?}, {"q":(2)2, ?}]>]>}
// CHECK-NEXT: return %0, %1
// CONSERVATIVE-LABEL: func.func @options(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q"}, {?}]>}, %arg1: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q"}]>}) -> (tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q", ?}, {?}]>}, tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>})
// CONSERVATIVE-NEXT: %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", "q", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=16, j=16, k=16} reduction={k}>}
// CONSERVATIVE-NEXT: %1 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([ij, k])->([i, jk]) {i=8, j=2, k=16}>}
// CONSERVATIVE-NEXT: return %0, %1
func.func @options(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q"}, {?}]>}, %arg1: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q"}]>}) -> (tensor<16x16xf32>, tensor<8x32xf32>) {
  %0 = stablehlo.dot %arg0, %arg1 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = stablehlo.reshape %arg0 : (tensor<16x16xf32>) -> tensor<8x32xf32>
  return %0, %1 : tensor<16x16xf32>, tensor<8x32xf32>
}
