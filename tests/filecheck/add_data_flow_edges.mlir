// RUN: sdy_opt %s -split-input-file -sdy-add-data-flow-edges | FileCheck %s

sdy.mesh @mesh = <["p"=2, "q"=2]>

// The result owns the edge of a loop; its block arguments do not get one, and neither does a token.
// CHECK-LABEL: func.func @while_loop(
// CHECK-NEXT: %0:3 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1, %iterArg_1 = %arg2) : tensor<8x8xf32>, !stablehlo.token, tensor<i32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}, {?}]>, <@mesh, []>, <@mesh, []>]>}
// CHECK-NEXT: cond {
// CHECK-NEXT: %4 = stablehlo.compare LT, %iterArg_1, %arg2
// CHECK-NEXT: stablehlo.return %4
// CHECK-NEXT: } do {
// CHECK-NEXT: %4 = stablehlo.negate %iterArg
// CHECK-NEXT: stablehlo.return %4, %iterArg_0, %iterArg_1
// CHECK-NEXT: }
// CHECK-NEXT: %1 = sdy.data_flow_edge %0#0 sharding=<@mesh, [{"p"}, {?}]>
// CHECK-NEXT: %2 = sdy.data_flow_edge %0#2 sharding=<@mesh, []>
// CHECK-NEXT: %3 = stablehlo.sine %1
// CHECK-NEXT: return %3, %1
func.func @while_loop(%arg0: tensor<8x8xf32>, %arg1: !stablehlo.token, %arg2: tensor<i32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0:3 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1, %iterArg_1 = %arg2) : tensor<8x8xf32>, !stablehlo.token, tensor<i32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}, {?}]>, <@mesh, []>, <@mesh, []>]>}
  cond {
    %1 = stablehlo.compare LT, %iterArg_1, %arg2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.negate %iterArg : tensor<8x8xf32>
    stablehlo.return %1, %iterArg_0, %iterArg_1 : tensor<8x8xf32>, !stablehlo.token, tensor<i32>
  }
  %2 = stablehlo.sine %0#0 : tensor<8x8xf32>
  return %2, %0#0 : tensor<8x8xf32>, tensor<8x8xf32>
}

// A branch has no operands of its own: one edge per result, unused results included.
// CHECK-LABEL: func.func @branches(
// CHECK-NEXT: %0:2 = "stablehlo.case"(%arg0) ({
// CHECK-NEXT: stablehlo.return %arg1, %arg2
// CHECK-NEXT: }, {
// CHECK-NEXT: stablehlo.return %arg2, %arg1
// CHECK-NEXT: })
// CHECK-NEXT: %1 = sdy.data_flow_edge %0#0
// CHECK-NEXT: %2 = sdy.data_flow_edge %0#1
// CHECK-NEXT: return %2
func.func @branches(%arg0: tensor<i32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>) -> tensor<8xf32> {
  %0:2 = "stablehlo.case"(%arg0) ({
    stablehlo.return %arg1, %arg2 : tensor<8xf32>, tensor<8xf32>
  }, {
    stablehlo.return %arg2, %arg1 : tensor<8xf32>, tensor<8xf32>
  }) : (tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#1 : tensor<8xf32>
}

// A scalar has an edge; a value of dynamic shape has none.
// CHECK-LABEL: func.func @barrier(
// CHECK-NEXT: %0:2 = stablehlo.optimization_barrier %arg0, %arg1
// CHECK-NEXT: %1 = sdy.data_flow_edge %0#0
// CHECK-NEXT: return %1, %0#1
func.func @barrier(%arg0: tensor<f32>, %arg1: tensor<?xf32>) -> (tensor<f32>, tensor<?xf32>) {
  %0:2 = stablehlo.optimization_barrier %arg0, %arg1 : tensor<f32>, tensor<?xf32>
  return %0#0, %0#1 : tensor<f32>, tensor<?xf32>
}

// Inside, an edge has no manual axes; the edge of the result has them.
// CHECK-LABEL: func.func @manual(
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"p", "q", ?}, {}]>, <@mesh, [{"q"}], replicated={"p"}>] out_shardings=[<@mesh, [{"p"}, {}]>] manual_axes={"p"} (%arg2: tensor<4x8xf32>, %arg3: tensor<8xf32>) {
// CHECK-NEXT: %2 = sdy.data_flow_edge %arg2 sharding=<@mesh, [{"q", ?}, {}]>
// CHECK-NEXT: %3 = sdy.data_flow_edge %arg3 sharding=<@mesh, [{"q"}]>
// CHECK-NEXT: %4 = stablehlo.add %2, %2
// CHECK-NEXT: sdy.return %4
// CHECK-NEXT: }
// CHECK-NEXT: %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"p"}, {}]>
// CHECK-NEXT: return %1
func.func @manual(%arg0: tensor<8x8xf32>, %arg1: tensor<8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"p", "q", ?}, {}]>, <@mesh, [{"q"}], replicated={"p"}>] out_shardings=[<@mesh, [{"p"}, {}]>] manual_axes={"p"} (%arg2: tensor<4x8xf32>, %arg3: tensor<8xf32>) {
    %1 = stablehlo.add %arg2, %arg2 : tensor<4x8xf32>
    sdy.return %1 : tensor<4x8xf32>
  } : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Named computations: with shardings on one side only, nested.
// CHECK-LABEL: func.func @named(
// CHECK-NEXT: %0 = sdy.named_computation<"outer">(%arg0) in_shardings=[<@mesh, [{"p", ?}]>] (%arg1: tensor<8xf32>) {
// CHECK-NEXT: %2 = sdy.data_flow_edge %arg1 sharding=<@mesh, [{"p", ?}]>
// CHECK-NEXT: %3 = sdy.named_computation<"inner">(%2) out_shardings=[<@mesh, [{"q"}]>] (%arg2: tensor<8xf32>) {
// CHECK-NEXT: %5 = sdy.data_flow_edge %arg2
// CHECK-NEXT: sdy.return %5
// CHECK-NEXT: }
// CHECK-NEXT: %4 = sdy.data_flow_edge %3 sharding=<@mesh, [{"q"}]>
// CHECK-NEXT: sdy.return %4
// CHECK-NEXT: }
// CHECK-NEXT: %1 = sdy.data_flow_edge %0
// CHECK-NEXT: return %1
func.func @named(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.named_computation<"outer">(%arg0) in_shardings=[<@mesh, [{"p", ?}]>] (%arg1: tensor<8xf32>) {
    %1 = sdy.named_computation<"inner">(%arg1) out_shardings=[<@mesh, [{"q"}]>] (%arg2: tensor<8xf32>) {
      sdy.return %arg2 : tensor<8xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Other ops with regions have no edges.
// CHECK-LABEL: func.func @reduction(
// CHECK-NEXT: %0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [1]
// CHECK-NEXT: return %0
func.func @reduction(%arg0: tensor<8x8xf32>, %arg1: tensor<f32>) -> tensor<8xf32> {
  %0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// DIFFERS: the reference puts a second edge on what has one, and refuses the module.
// CHECK-LABEL: func.func @has_edges(
// CHECK-NEXT: %0:2 = stablehlo.optimization_barrier %arg0, %arg1
// CHECK-NEXT: %1 = sdy.data_flow_edge %0#0
// CHECK-NEXT: %2 = sdy.data_flow_edge %0#1
// CHECK-NEXT: %3 = stablehlo.add %1, %2
// CHECK-NEXT: return %3
func.func @has_edges(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> tensor<8xf32> {
  %0:2 = stablehlo.optimization_barrier %arg0, %arg1 : tensor<8xf32>, tensor<8xf32>
  %1 = sdy.data_flow_edge %0#1 : tensor<8xf32>
  %2 = stablehlo.add %0#0, %1 : tensor<8xf32>
  return %2 : tensor<8xf32>
}
