// RUN: sdy_opt %s -sdy-apply-sharding-constraints='debug-sharding-origins=true debug-propagation-edge-sharding=true' | FileCheck %s

// NEWER: before, functions came in the order of the module.
// Every sharding that is put on an input is a step; those of callees come first, a scalar is none.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding_origins = {p = "constraint_0", q = "constraint_0"}}, tensor<f32>)
// CHECK: %0 = call @f(%arg0)
// CHECK: %1 = stablehlo.sine %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}, {"q"}]>]>, sdy.sharding_origins = [{p = "constraint_0", q = "constraint_0"}]}
// CHECK: %2 = sdy.sharding_constraint %1 <@mesh, [{"p"}, {"q"}]> {sdy.propagation_edges = #sdy.propagation_edges<[{step-1 = [{"p" = result-0 -> [operand-0]}, {"q" = result-0 -> [operand-0]}]}]>, sdy.sharding_origin_name = "constraint_0", sdy.sharding_origins = {p = "self", q = "self"}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>}
// CHECK: %cst = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<0.000000e+00>
// CHECK: %3 = sdy.sharding_constraint %cst <@mesh, []> {sdy.sharding_origin_name = "constraint_1", sdy.sharding_rule = #sdy.op_sharding_rule<([])->([])>}
// CHECK: return %2, %3
func.func @main(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<f32>) {
  %0 = call @f(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.sine %0 : tensor<8x8xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{"p"}, {"q"}]> : tensor<8x8xf32>
  %3 = stablehlo.constant dense<0.0> : tensor<f32>
  %4 = sdy.sharding_constraint %3 <@mesh, []> : tensor<f32>
  return %2, %4 : tensor<8x8xf32>, tensor<f32>
}
// CHECK-LABEL: func.func private @f(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding_origins = {p = "constraint_2"}})
// CHECK: %0 = stablehlo.cosine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"p"}]>]>, sdy.sharding_origins = [{p = "constraint_2"}]}
// CHECK: %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"p"}]> {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"p" = result-0 -> [operand-0]}]}]>, sdy.sharding_origin_name = "constraint_2", sdy.sharding_origins = {p = "self"}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>}
// CHECK: return %1
func.func private @f(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.cosine %arg0 : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"p"}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
