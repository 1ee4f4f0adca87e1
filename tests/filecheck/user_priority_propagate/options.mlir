// RUN: sdy_opt %s -sdy-user-priority-propagate='run-op-priority-propagation=false propagation-strategy=basic' | FileCheck %s
// RUN: sdy_opt %s -sdy-user-priority-propagate='keep-sharding-rules=true conservative-propagation=true' | FileCheck %s --check-prefix=KEPT

sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @options(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p"}]>}) -> tensor<8x8xf32>
// CHECK-NEXT: %0 = stablehlo.dot %arg0, %arg1
// CHECK-NEXT: return %0
// KEPT-LABEL: func.func @options(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p"}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>})
// KEPT-NEXT: %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=8, k=8} reduction={k}>}
// KEPT-NEXT: return %0
func.func @options(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}p1, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p"}p1]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.dot %arg0, %arg1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
