// RUN: sdy_opt %s -sdy-op-priority-propagate='debug-sharding-origins=true debug-propagation-edge-sharding=true' | FileCheck %s

// Element-wise ops come before products.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>, sdy.sharding_origins = {p = "self"}}, %arg1: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.propagation_edges = #sdy.propagation_edges<[{step-2 = [{"p" = operand-0 -> [result-0]}]}]>, sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>, sdy.sharding_origins = {p = "input: 0"}})
// CHECK: %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>, sdy.sharding_origins = [{p = "input: 0"}]}
// CHECK: %1 = stablehlo.sine %arg0 {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"p" = operand-0 -> [result-0]}]}]>, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>, sdy.sharding_origins = [{p = "input: 0"}]}
// CHECK: %2 = stablehlo.add %0, %1 {sdy.propagation_edges = #sdy.propagation_edges<[{step-1 = [{"p" = operand-1 -> [operand-0, result-0]}]}]>, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>, sdy.sharding_origins = [{p = "input: 0"}]}
// CHECK: return %2
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.dot %arg0, %arg1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.sine %arg0 : tensor<8x8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
