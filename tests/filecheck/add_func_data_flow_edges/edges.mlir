// RUN: sdy_opt %s -sdy-add-func-data-flow-edges | FileCheck %s

sdy.mesh @mesh = <["p"=2]>

// Results of calls get an edge each, in order, with their sharding; arguments of main do not, and tokens neither.
// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}, %arg1: !stablehlo.token) -> (tensor<8xf32>, tensor<f32>)
// CHECK-NEXT: %0:3 = call @callee(%arg0, %arg1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}]>, <@mesh, []>, <@mesh, []>]>}
// CHECK-NEXT: %1 = sdy.func_data_flow_edge %0#0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}]>]>}
// CHECK-NEXT: %2 = sdy.func_data_flow_edge %0#2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>}
// CHECK-NEXT: %3 = stablehlo.while(%iterArg = %1)
// CHECK-NEXT: cond {
// CHECK-NEXT: %4 = func.call @condition(%iterArg)
// CHECK-NEXT: %5 = sdy.func_data_flow_edge %4
// CHECK-NEXT: stablehlo.return %5
// CHECK-NEXT: } do {
// CHECK-NEXT: stablehlo.return %iterArg
// CHECK-NEXT: }
// CHECK-NEXT: return %3, %2
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}, %arg1: !stablehlo.token) -> (tensor<8xf32>, tensor<f32>) {
  %0:3 = call @callee(%arg0, %arg1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}]>, <@mesh, []>, <@mesh, []>]>} : (tensor<8xf32>, !stablehlo.token) -> (tensor<8xf32>, !stablehlo.token, tensor<f32>)
  %1 = stablehlo.while(%iterArg = %0#0) : tensor<8xf32>
  cond {
    %2 = func.call @condition(%iterArg) : (tensor<8xf32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    stablehlo.return %iterArg : tensor<8xf32>
  }
  return %1, %0#2 : tensor<8xf32>, tensor<f32>
}

// Arguments of other functions get one each, used or not; those of functions that nobody calls too.
// CHECK-LABEL: func.func private @callee(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}, %arg1: !stablehlo.token) -> (tensor<8xf32>, !stablehlo.token, tensor<f32>)
// CHECK-NEXT: %0 = sdy.func_data_flow_edge %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}]>]>}
// CHECK-NEXT: %cst = stablehlo.constant dense<0.000000e+00>
// CHECK-NEXT: return %0, %arg1, %cst
func.func private @callee(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}, %arg1: !stablehlo.token) -> (tensor<8xf32>, !stablehlo.token, tensor<f32>) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  return %arg0, %arg1, %0 : tensor<8xf32>, !stablehlo.token, tensor<f32>
}
// CHECK-LABEL: func.func private @condition(
// CHECK-NEXT: %0 = sdy.func_data_flow_edge %arg0
// CHECK-NEXT: %c = stablehlo.constant dense<false>
// CHECK-NEXT: return %c
func.func private @condition(%arg0: tensor<8xf32>) -> tensor<i1> {
  %0 = stablehlo.constant dense<false> : tensor<i1>
  return %0 : tensor<i1>
}
// CHECK-LABEL: func.func @uncalled(
// CHECK-NEXT: %0 = sdy.func_data_flow_edge %arg0
// CHECK-NEXT: %1 = sdy.func_data_flow_edge %arg1
// CHECK-NEXT: return %1
func.func @uncalled(%arg0: tensor<8xf32>, %arg1: tensor<4xi32>) -> tensor<4xi32> {
  return %arg1 : tensor<4xi32>
}
