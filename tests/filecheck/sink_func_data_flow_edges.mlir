// RUN: sdy_opt %s -sdy-sink-func-data-flow-edges | FileCheck %s

sdy.mesh @mesh = <["p"=2, "q"=2]>

// The sharding of an edge goes onto the result of the call or the argument; an edge without one opens what is there.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0:2 = call @callee(%arg0, %arg0, %arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}]>, <@mesh, [{"q", "p", ?}]>]>}
// CHECK-NEXT: %1:2 = call @callee(%arg0, %arg0, %arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}]>, <@mesh, [{"p", ?}]>]>}
// CHECK-NEXT: %2 = stablehlo.add %1#0, %1#1
// CHECK-NEXT: return %0#0, %0#1, %2
func.func @main(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0:2 = call @callee(%arg0, %arg0, %arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}]>, <@mesh, [{"q"}]>]>} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %1 = sdy.func_data_flow_edge %0#0 : tensor<8xf32>
  %2 = sdy.func_data_flow_edge %0#1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"q", "p", ?}]>]>} : tensor<8xf32>
  %3:2 = call @callee(%arg0, %arg0, %arg0) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %4 = sdy.func_data_flow_edge %3#0 : tensor<8xf32>
  %5 = sdy.func_data_flow_edge %3#1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}]>]>} : tensor<8xf32>
  %6 = stablehlo.add %4, %5 : tensor<8xf32>
  return %1, %2, %6 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
// CHECK-LABEL: func.func private @callee(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>, some.other = 1 : i32}, %arg2: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK-NEXT: %0 = stablehlo.add %arg1, %arg2
// CHECK-NEXT: return %arg0, %0
func.func private @callee(%arg0: tensor<8xf32>, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}], replicated={"q"}>, some.other = 1 : i32}, %arg2: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = sdy.func_data_flow_edge %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"q"}]>]>} : tensor<8xf32>
  %1 = sdy.func_data_flow_edge %arg1 : tensor<8xf32>
  %2 = sdy.func_data_flow_edge %arg2 : tensor<8xf32>
  %3 = stablehlo.add %1, %2 : tensor<8xf32>
  return %0, %3 : tensor<8xf32>, tensor<8xf32>
}
