// RUN: sdy_opt %s -sdy-sink-data-flow-edges='sink-debug-sharding-origins=true sink-debug-propagation-edge-sharding=true' | FileCheck %s
// RUN: sdy_opt %s -sdy-sink-data-flow-edges='sink-debug-sharding-origins=true' | FileCheck %s --check-prefix=ORIGINS

// One entry for each edge, whether it has a sharding or not.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @barrier(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>, %arg2: !stablehlo.token) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK: %0:3 = stablehlo.optimization_barrier {sdy.block_arg_propagation_edges = [], sdy.block_arg_sharding_origins = [], sdy.result_propagation_edges = [#sdy.propagation_edges<[{step-3 = [{"p" = operand-0 -> [result-0]}]}]>, #sdy.propagation_edges<[{step-4 = [{"q" = result-0 -> [operand-0]}]}]>], sdy.result_sharding_origins = [{p = "input: 0"}, {q = "self"}], sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}]>, <@mesh, [{"q", ?}]>, <@mesh, []>]>} %arg0, %arg1, %arg2
// CHECK: return %0#0, %0#1
// ORIGINS-LABEL: func.func @barrier(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>, %arg2: !stablehlo.token) -> (tensor<8xf32>, tensor<8xf32>)
// ORIGINS: %0:3 = stablehlo.optimization_barrier {sdy.block_arg_sharding_origins = [], sdy.result_sharding_origins = [{p = "input: 0"}, {q = "self"}], sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}]>, <@mesh, [{"q", ?}]>, <@mesh, []>]>} %arg0, %arg1, %arg2
// ORIGINS: return %0#0, %0#1
func.func @barrier(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>, %arg2: !stablehlo.token) -> (tensor<8xf32>, tensor<8xf32>) {
  %0:3 = stablehlo.optimization_barrier %arg0, %arg1, %arg2 : tensor<8xf32>, tensor<8xf32>, !stablehlo.token
  %1 = sdy.data_flow_edge %0#0 sharding=<@mesh, [{"p", ?}]> {sdy.propagation_edges = #sdy.propagation_edges<[{step-3 = [{"p" = operand-0 -> [result-0]}]}]>, sdy.sharding_origins = {p = "input: 0"}} : tensor<8xf32>
  %2 = sdy.data_flow_edge %0#1 sharding=<@mesh, [{"q", ?}]> {sdy.propagation_edges = #sdy.propagation_edges<[{step-4 = [{"q" = result-0 -> [operand-0]}]}]>, sdy.sharding_origins = {q = "self"}} : tensor<8xf32>
  return %1, %2 : tensor<8xf32>, tensor<8xf32>
}
// CHECK-LABEL: func.func @branches(%arg0: tensor<i32>, %arg1: tensor<8xf32>) -> tensor<8xf32>
// CHECK: %0 = "stablehlo.case"(%arg0) ({
// CHECK: stablehlo.return %arg1
// CHECK: }) {sdy.block_arg_propagation_edges = [], sdy.block_arg_sharding_origins = [], sdy.result_propagation_edges = [], sdy.result_sharding_origins = []}
// CHECK: return %0
// ORIGINS-LABEL: func.func @branches(%arg0: tensor<i32>, %arg1: tensor<8xf32>) -> tensor<8xf32>
// ORIGINS: %0 = "stablehlo.case"(%arg0) ({
// ORIGINS: stablehlo.return %arg1
// ORIGINS: }) {sdy.block_arg_sharding_origins = [], sdy.result_sharding_origins = []}
// ORIGINS: return %0
func.func @branches(%arg0: tensor<i32>, %arg1: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.case"(%arg0) ({
    stablehlo.return %arg1 : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
