// RUN: sdy_opt %s -sdy-flatten-call-graph | FileCheck %s

// The first call of a function keeps it, every further one gets a copy, callees included. One counter numbers all copies,
// inner ones first; a copy of a copy remembers the first name.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0 = call @outer(%arg0)
// CHECK-NEXT: %1 = call @leaf_2(%0)
// CHECK-NEXT: %2 = call @outer_7(%1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
// CHECK-NEXT: %3 = call @leaf_8(%2) {some.attribute = 1 : i32}
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @outer(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @leaf(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = call @outer(%1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  %3 = call @leaf(%2) {some.attribute = 1 : i32} : (tensor<8xf32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}
sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func private @outer(%arg0: tensor<8xf32>) -> tensor<8xf32> attributes {execution_thread = "host"}
// CHECK-NEXT: %0 = call @mid(%arg0)
// CHECK-NEXT: %1 = call @mid_1(%0)
func.func private @outer(%arg0: tensor<8xf32>) -> tensor<8xf32> attributes {execution_thread = "host"} {
  %0 = call @mid(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @mid(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
// CHECK-LABEL: func.func private @mid(
// CHECK: %1 = func.call @leaf(%iterArg)
func.func private @mid(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.while(%iterArg = %arg0) : tensor<8xf32>
  cond {
    %1 = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = func.call @leaf(%iterArg) : (tensor<8xf32>) -> tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}
// CHECK-LABEL: func.func @leaf(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {some.result = true})
// CHECK-NEXT: return %arg0
func.func @leaf(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {some.result = true}) {
  return %arg0 : tensor<8xf32>
}
// CHECK-LABEL: func.func @leaf_0(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {some.result = true}) attributes {sdy.original_func_name = "leaf"}
// CHECK-NEXT: return %arg0
// CHECK-LABEL: func.func private @mid_1(%arg0: tensor<8xf32>) -> tensor<8xf32> attributes {sdy.original_func_name = "mid"}
// CHECK: %1 = func.call @leaf_0(%iterArg)
// CHECK-LABEL: func.func @leaf_2(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {some.result = true}) attributes {sdy.original_func_name = "leaf"}
// CHECK-NEXT: return %arg0
// CHECK-LABEL: func.func @leaf_3(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {some.result = true}) attributes {sdy.original_func_name = "leaf"}
// CHECK-NEXT: return %arg0
// CHECK-LABEL: func.func private @mid_4(%arg0: tensor<8xf32>) -> tensor<8xf32> attributes {sdy.original_func_name = "mid"}
// CHECK: %1 = func.call @leaf_3(%iterArg)
// CHECK-LABEL: func.func @leaf_0_5(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {some.result = true}) attributes {sdy.original_func_name = "leaf"}
// CHECK-NEXT: return %arg0
// CHECK-LABEL: func.func private @mid_1_6(%arg0: tensor<8xf32>) -> tensor<8xf32> attributes {sdy.original_func_name = "mid"}
// CHECK: %1 = func.call @leaf_0_5(%iterArg)
// CHECK-LABEL: func.func private @outer_7(%arg0: tensor<8xf32>) -> tensor<8xf32> attributes {execution_thread = "host", sdy.original_func_name = "outer"}
// CHECK-NEXT: %0 = call @mid_4(%arg0)
// CHECK-NEXT: %1 = call @mid_1_6(%0)
// CHECK-LABEL: func.func @leaf_8(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {some.result = true}) attributes {sdy.original_func_name = "leaf"}
// CHECK-NEXT: return %arg0
