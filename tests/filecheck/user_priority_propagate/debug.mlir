// RUN: sdy_opt %s -sdy-user-priority-propagate='debug-sharding-origins=true debug-propagation-edge-sharding=true' | FileCheck %s

// What waits for its turn comes later.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {"q", ?}]>, sdy.sharding_origins = {p = "self", q = "input: 1"}}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q"}]>, sdy.sharding_origins = {p = "input: 0", q = "self"}}) -> (tensor<8x8xf32> {sdy.propagation_edges = #sdy.propagation_edges<[{step-1 = [{"q" = operand-0 -> [result-0]}]}, {step-3 = [{"p" = operand-0 -> [result-0]}]}]>, sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>, sdy.sharding_origins = {p = "input: 0", q = "input: 1"}})
// CHECK: %0 = stablehlo.add %arg0, %arg1 {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"q" = operand-1 -> [operand-0, result-0]}]}, {step-2 = [{"p" = operand-0 -> [operand-1, result-0]}]}]>, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {"q", ?}]>]>, sdy.sharding_origins = [{p = "input: 0", q = "input: 1"}]}
// CHECK: return %0
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}p1, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q"}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
