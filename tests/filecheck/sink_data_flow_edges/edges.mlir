// RUN: sdy_opt %s -sdy-sink-data-flow-edges | FileCheck %s

sdy.mesh @mesh = <["p"=2, "q"=2, "r"=2]>

// The sharding of an edge goes onto the op, open ones for the other results, tokens included; the edge goes.
// CHECK-LABEL: func.func @barrier(
// CHECK-NEXT: %0:3 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>, <@mesh, [{?}]>, <@mesh, []>]>} %arg0, %arg1, %arg2
// CHECK-NEXT: return %0#0, %0#1
func.func @barrier(%arg0: tensor<8x8xf32>, %arg1: tensor<8xf32>, %arg2: !stablehlo.token) -> (tensor<8x8xf32>, tensor<8xf32>) {
  %0:3 = stablehlo.optimization_barrier %arg0, %arg1, %arg2 : tensor<8x8xf32>, tensor<8xf32>, !stablehlo.token
  %1 = sdy.data_flow_edge %0#0 sharding=<@mesh, [{"p", ?}, {?}]> : tensor<8x8xf32>
  %2 = sdy.data_flow_edge %0#1 : tensor<8xf32>
  return %1, %2 : tensor<8x8xf32>, tensor<8xf32>
}

// If no edge has a sharding, the op keeps what it has.
// CHECK-LABEL: func.func @nothing(
// CHECK-NEXT: %0:2 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}]>, <@mesh, [{}]>]>} %arg0, %arg1
// CHECK-NEXT: return %0#0, %0#1
func.func @nothing(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0:2 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}]>, <@mesh, [{}]>]>} %arg0, %arg1 : tensor<8xf32>, tensor<8xf32>
  %1 = sdy.data_flow_edge %0#0 : tensor<8xf32>
  return %1, %0#1 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @while_loop(
// CHECK-NEXT: %0 = stablehlo.while(%iterArg = %arg0) : tensor<8xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}]>]>}
// CHECK-NEXT: cond {
// CHECK-NEXT: %c = stablehlo.constant dense<false>
// CHECK-NEXT: stablehlo.return %c
// CHECK-NEXT: } do {
// CHECK-NEXT: %1 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"q"}]>]>} %iterArg
// CHECK-NEXT: stablehlo.return %1
// CHECK-NEXT: }
// CHECK-NEXT: return %0
func.func @while_loop(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.while(%iterArg = %arg0) : tensor<8xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}]>]>}
  cond {
    %2 = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %2 = stablehlo.optimization_barrier %iterArg : tensor<8xf32>
    %3 = sdy.data_flow_edge %2 sharding=<@mesh, [{"q"}]> : tensor<8xf32>
    stablehlo.return %3 : tensor<8xf32>
  }
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"p", ?}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// In a manual computation the manual axes come before what the edge has; replicated and unreduced axes are those of the
// in-sharding, as a sum.
// CHECK-LABEL: func.func @manual(
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"q", "p", ?}, {?}], replicated={"r"}>, <@mesh, [{"q", ?}, {?}]>] out_shardings=[<@mesh, [{"q", "p", ?}, {?}]>] manual_axes={"q"} (%arg2: tensor<4x8xf32>, %arg3: tensor<4x8xf32>) {
// CHECK-NEXT: %1 = stablehlo.add %arg2, %arg3
// CHECK-NEXT: sdy.return %1
// CHECK-NEXT: }
// CHECK-NEXT: return %0
func.func @manual(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"q", ?}, {?}], replicated={"r"}>, <@mesh, [{"q"}, {?}]>] out_shardings=[<@mesh, [{"q"}, {}]>] manual_axes={"q"} (%arg2: tensor<4x8xf32>, %arg3: tensor<4x8xf32>) {
    %2 = sdy.data_flow_edge %arg2 sharding=<@mesh, [{"p", ?}, {?}]> : tensor<4x8xf32>
    %3 = sdy.data_flow_edge %arg3 : tensor<4x8xf32>
    %4 = stablehlo.add %2, %3 : tensor<4x8xf32>
    sdy.return %4 : tensor<4x8xf32>
  } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"q", "p", ?}, {?}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// Arguments and results of a named computation stand apart.
// CHECK-LABEL: func.func @named(
// CHECK-NEXT: %0 = sdy.named_computation<"foo">(%arg0, %arg1) in_shardings=[<@mesh, [{?}]>, <@mesh, [{"p", ?}]>] (%arg2: tensor<8xf32>, %arg3: tensor<8xf32>) {
// CHECK-NEXT: %1 = stablehlo.add %arg2, %arg3
// CHECK-NEXT: sdy.return %1
// CHECK-NEXT: }
// CHECK-NEXT: return %0
func.func @named(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.named_computation<"foo">(%arg0, %arg1) (%arg2: tensor<8xf32>, %arg3: tensor<8xf32>) {
    %2 = sdy.data_flow_edge %arg2 : tensor<8xf32>
    %3 = sdy.data_flow_edge %arg3 sharding=<@mesh, [{"p", ?}]> : tensor<8xf32>
    %4 = stablehlo.add %2, %3 : tensor<8xf32>
    sdy.return %4 : tensor<8xf32>
  } : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = sdy.data_flow_edge %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK-LABEL: func.func @branches(
// CHECK-NEXT: %0 = "stablehlo.case"(%arg0) ({
// CHECK-NEXT: stablehlo.return %arg1
// CHECK-NEXT: }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}]>]>}
// CHECK-NEXT: return %0
func.func @branches(%arg0: tensor<i32>, %arg1: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.case"(%arg0) ({
    stablehlo.return %arg1 : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"p"}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}
