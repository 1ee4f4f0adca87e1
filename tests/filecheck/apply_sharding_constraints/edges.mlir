// RUN: sdy_opt %s -split-input-file -sdy-apply-sharding-constraints | FileCheck %s

sdy.mesh @mesh = <["p"=2, "q"=2]>

// A value whose sharding is shared through an edge keeps it; the constraint moves right behind it, and all other uses go
// through the constraint. In a loop the front of the body is behind the argument.
// CHECK-LABEL: func.func @while_loop(
// CHECK-NEXT: %0 = stablehlo.while(%iterArg = %arg0)
// CHECK-NEXT: cond {
// CHECK-NEXT: %c = stablehlo.constant dense<false>
// CHECK-NEXT: stablehlo.return %c
// CHECK-NEXT: } do {
// CHECK-NEXT: %4 = sdy.sharding_constraint %iterArg <@mesh, [{"p"}, {}]>
// CHECK-NEXT: %5 = stablehlo.sine %4
// CHECK-NEXT: %6 = sdy.sharding_constraint %4 <@mesh, [{"p"}, {}]>
// CHECK-NEXT: %7 = stablehlo.add %5, %4
// CHECK-NEXT: stablehlo.return %7
// CHECK-NEXT: }
// CHECK-NEXT: %1 = sdy.data_flow_edge %0
// CHECK-NEXT: %2 = sdy.sharding_constraint %1 <@mesh, [{"q"}, {}]>
// CHECK-NEXT: %3 = stablehlo.abs %2
// CHECK-NEXT: return %3, %2
func.func @while_loop(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.while(%iterArg = %arg0) : tensor<8x8xf32>
  cond {
    %4 = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %4 : tensor<i1>
  } do {
    %4 = stablehlo.sine %iterArg : tensor<8x8xf32>
    %5 = sdy.sharding_constraint %iterArg <@mesh, [{"p"}, {}]> : tensor<8x8xf32>
    %6 = sdy.sharding_constraint %iterArg <@mesh, [{"p"}, {}]> : tensor<8x8xf32>
    %7 = stablehlo.add %4, %5 : tensor<8x8xf32>
    stablehlo.return %7 : tensor<8x8xf32>
  }
  %1 = sdy.data_flow_edge %0 : tensor<8x8xf32>
  %2 = stablehlo.abs %1 : tensor<8x8xf32>
  %3 = sdy.sharding_constraint %1 <@mesh, [{"q"}, {}]> : tensor<8x8xf32>
  return %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>
}

// Without an edge, the loop itself holds the sharding.
// CHECK-LABEL: func.func @no_edge(
// CHECK-NEXT: %0 = stablehlo.while(%iterArg = %arg0) : tensor<8x8xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}, {}]>]>}
// CHECK-NEXT: cond {
// CHECK-NEXT: %c = stablehlo.constant dense<false>
// CHECK-NEXT: stablehlo.return %c
// CHECK-NEXT: } do {
// CHECK-NEXT: %1 = sdy.sharding_constraint %iterArg <@mesh, [{"p"}, {}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>}
// CHECK-NEXT: stablehlo.return %1
// CHECK-NEXT: }
// CHECK-NEXT: return %0
func.func @no_edge(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.while(%iterArg = %arg0) : tensor<8x8xf32>
  cond {
    %2 = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %2 = sdy.sharding_constraint %iterArg <@mesh, [{"p"}, {}]> : tensor<8x8xf32>
    stablehlo.return %2 : tensor<8x8xf32>
  }
  return %0 : tensor<8x8xf32>
}

// A manual computation constrains its operands like a constraint with the in-sharding; on an edge a new constraint is made.
// CHECK-LABEL: func.func @manual(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {}]>}, %arg1: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
// CHECK-NEXT: %0 = stablehlo.optimization_barrier %arg1
// CHECK-NEXT: %1 = sdy.data_flow_edge %0
// CHECK-NEXT: %2 = sdy.sharding_constraint %1 <@mesh, [{}, {"p"}]>
// CHECK-NEXT: %3 = sdy.manual_computation(%arg0, %2) in_shardings=[<@mesh, [{"p"}, {}]>, <@mesh, [{}, {"p"}]>] out_shardings=[<@mesh, [{"p"}, {}]>] manual_axes={"p"} (%arg2: tensor<4x8xf32>, %arg3: tensor<8x4xf32>) {
// CHECK-NEXT: sdy.return %arg2
// CHECK-NEXT: }
// CHECK-NEXT: return %3, %2
func.func @manual(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.optimization_barrier %arg1 : tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 : tensor<8x8xf32>
  %2 = sdy.manual_computation(%arg0, %1) in_shardings=[<@mesh, [{"p"}, {}]>, <@mesh, [{}, {"p"}]>] out_shardings=[<@mesh, [{"p"}, {}]>] manual_axes={"p"} (%arg2: tensor<4x8xf32>, %arg3: tensor<8x4xf32>) {
    sdy.return %arg2 : tensor<4x8xf32>
  } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// Both uses of one operand must agree.
// CHECK-LABEL: func.func @manual_disagrees(
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0, %arg0) in_shardings=[<@mesh, [{"p"}, {}]>, <@mesh, [{}, {"p"}]>] out_shardings=[<@mesh, [{"p"}, {}]>] manual_axes={"p"} (%arg1: tensor<4x8xf32>, %arg2: tensor<8x4xf32>) {
// CHECK-NEXT: sdy.return %arg1
// CHECK-NEXT: }
// CHECK-NEXT: return %0
func.func @manual_disagrees(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%arg0, %arg0) in_shardings=[<@mesh, [{"p"}, {}]>, <@mesh, [{}, {"p"}]>] out_shardings=[<@mesh, [{"p"}, {}]>] manual_axes={"p"} (%arg2: tensor<4x8xf32>, %arg3: tensor<8x4xf32>) {
    sdy.return %arg2 : tensor<4x8xf32>
  } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Unreduced axes do not propagate: the edge gets them at once.
// CHECK-LABEL: func.func @unreduced(
// CHECK-NEXT: %0 = stablehlo.optimization_barrier %arg0
// CHECK-NEXT: %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{?}, {?}], unreduced={"q"}>
// CHECK-NEXT: %2 = sdy.sharding_constraint %1 <@mesh, [{"p"}, {}], unreduced={"q"}>
// CHECK-NEXT: return %2
func.func @unreduced(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.optimization_barrier %arg0 : tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 : tensor<8x8xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{"p"}, {}], unreduced={"q"}> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @main()
func.func @main() {
  return
}

// -----

// NEWER: before, function edges were not recognised.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0 = call @f(%arg0)
// CHECK-NEXT: %1 = sdy.func_data_flow_edge %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}], unreduced={"q"}>]>}
// CHECK-NEXT: %2 = sdy.sharding_constraint %1 <@mesh, [{"p"}, {}], unreduced={"q"}>
// CHECK-NEXT: %3 = stablehlo.abs %2
// CHECK-NEXT: return %3, %2
func.func @main(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = call @f(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.func_data_flow_edge %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}]>]>} : tensor<8x8xf32>
  %2 = stablehlo.abs %1 : tensor<8x8xf32>
  %3 = sdy.sharding_constraint %1 <@mesh, [{"p"}, {}], unreduced={"q"}> : tensor<8x8xf32>
  return %2, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}
func.func private @f(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  return %arg0 : tensor<8x8xf32>
}
