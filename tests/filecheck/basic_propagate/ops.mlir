// RUN: sdy_opt %s -split-input-file -sdy-basic-propagate | FileCheck %s

// An edge joins all sources with all targets; what is on the loop itself does not change.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @while_loop(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {"q", ?}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>})
// CHECK-NEXT: %0 = stablehlo.while(%iterArg = %arg0) : tensor<8x8xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}]>]>}
// CHECK-NEXT: cond {
// CHECK-NEXT: %c = stablehlo.constant dense<false>
// CHECK-NEXT: stablehlo.return %c
// CHECK-NEXT: } do {
// CHECK-NEXT: %2 = stablehlo.custom_call @step(%iterArg) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {"q"}]>]>}
// CHECK-NEXT: stablehlo.return %2
// CHECK-NEXT: }
// CHECK-NEXT: %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"p", ?}, {"q", ?}]>
// CHECK-NEXT: return %1
func.func @while_loop(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.while(%iterArg = %arg0) : tensor<8x8xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}]>]>}
  cond {
    %2 = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %2 = stablehlo.custom_call @step(%iterArg) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"q"}]>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    stablehlo.return %2 : tensor<8x8xf32>
  }
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{?}, {?}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// The edge inside a manual computation has no manual axes, the edge of the result has them.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @manual(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {"q"}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q", ?}, {"p", ?}]>})
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"p", ?}, {?}]>] out_shardings=[<@mesh, [{?}, {"p", ?}]>] manual_axes={"p"} (%arg1: tensor<4x8xf32>) {
// CHECK-NEXT: %2 = sdy.data_flow_edge %arg1 sharding=<@mesh, [{?}, {"q", ?}]>
// CHECK-NEXT: %3 = stablehlo.dot_general %2, %2, contracting_dims = [1] x [1]
// CHECK-NEXT: %4 = stablehlo.custom_call @foo(%3) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"q"}, {?}]>]>}
// CHECK-NEXT: sdy.return %4
// CHECK-NEXT: }
// CHECK-NEXT: %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"q", ?}, {"p", ?}]>
// CHECK-NEXT: return %1
func.func @manual(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {"q"}]>}) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"p", ?}, {?}]>] out_shardings=[<@mesh, [{?}, {"p", ?}]>] manual_axes={"p"} (%arg1: tensor<4x8xf32>) {
    %2 = sdy.data_flow_edge %arg1 sharding=<@mesh, [{?}, {?}]> : tensor<4x8xf32>
    %3 = stablehlo.dot_general %2, %2, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
    %4 = stablehlo.custom_call @foo(%3) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"q"}, {?}]>]>} : (tensor<4x4xf32>) -> tensor<8x4xf32>
    sdy.return %4 : tensor<8x4xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{?}, {"p", ?}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// An operand of a computation that changes late does not reach the body in this run.
sdy.mesh @mesh = <["p"=2]>
// CHECK-LABEL: func.func @named(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>})
// CHECK-NEXT: %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>}
// CHECK-NEXT: %1 = sdy.named_computation<"block">(%0) (%arg1: tensor<8x8xf32>) {
// CHECK-NEXT: %4 = sdy.data_flow_edge %arg1
// CHECK-NEXT: %5 = stablehlo.cosine %4
// CHECK-NEXT: sdy.return %5
// CHECK-NEXT: }
// CHECK-NEXT: %2 = sdy.data_flow_edge %1
// CHECK-NEXT: %3 = stablehlo.abs %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>}
// CHECK-NEXT: return %2, %3
func.func @named(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.sine %arg0 : tensor<8x8xf32>
  %1 = sdy.named_computation<"block">(%0) (%arg1: tensor<8x8xf32>) {
    %4 = sdy.data_flow_edge %arg1 : tensor<8x8xf32>
    %5 = stablehlo.cosine %4 : tensor<8x8xf32>
    sdy.return %5 : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = sdy.data_flow_edge %1 : tensor<8x8xf32>
  %3 = stablehlo.abs %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>} : tensor<8x8xf32>
  return %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Edges at calls join all callers; what is on arguments and calls does not change. A call without edges passes nothing.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>}, tensor<8x8xf32>)
// CHECK-NEXT: %0 = call @block(%arg0)
// CHECK-NEXT: %1 = sdy.func_data_flow_edge %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {"q", ?}]>]>}
// CHECK-NEXT: %2 = call @block(%arg1)
// CHECK-NEXT: %3 = sdy.func_data_flow_edge %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {"q", ?}]>]>}
// CHECK-NEXT: %4 = call @bare(%arg1)
// CHECK-NEXT: return %1, %3, %4
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q", ?}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = func.call @block(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.func_data_flow_edge %0 : tensor<8x8xf32>
  %2 = func.call @block(%arg1) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = sdy.func_data_flow_edge %2 : tensor<8x8xf32>
  %4 = func.call @bare(%arg1) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1, %3, %4 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
// CHECK-LABEL: func.func private @block(
// CHECK-NEXT: %0 = sdy.func_data_flow_edge %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {"q", ?}]>]>}
// CHECK-NEXT: %1 = stablehlo.cosine %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {"q", ?}]>]>}
// CHECK-NEXT: return %1
func.func private @block(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.func_data_flow_edge %arg0 : tensor<8x8xf32>
  %1 = stablehlo.cosine %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
// CHECK-LABEL: func.func private @bare(
// CHECK-NEXT: return %arg0
func.func private @bare(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  return %arg0 : tensor<8x8xf32>
}

// -----

// A barrier lets shardings pass in its direction only; a reshard stops them.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @barriers(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>}, tensor<8x8xf32>, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p", ?}]>}, tensor<8x8xf32>)
// CHECK-NEXT: %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>}
// CHECK-NEXT: %1 = sdy.propagation_barrier %0 allowed_direction=FORWARD {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {"q", ?}]>]>}
// CHECK-NEXT: %2 = stablehlo.negate %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {"q", ?}]>]>}
// CHECK-NEXT: %3 = sdy.propagation_barrier %0 allowed_direction=NONE
// CHECK-NEXT: %4 = sdy.propagation_barrier %arg0 allowed_direction=BACKWARD {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"p", ?}]>]>}
// CHECK-NEXT: %5 = stablehlo.abs %4 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"p", ?}]>]>}
// CHECK-NEXT: %6 = sdy.reshard %0 <@mesh, [{?}, {?}]>
// CHECK-NEXT: return %2, %3, %5, %6
func.func @barriers(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>} : tensor<8x8xf32>
  %1 = sdy.propagation_barrier %0 allowed_direction=FORWARD : tensor<8x8xf32>
  %2 = stablehlo.custom_call @foo(%1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"q", ?}]>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = stablehlo.negate %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"q", ?}]>]>} : tensor<8x8xf32>
  %4 = sdy.propagation_barrier %0 allowed_direction=NONE : tensor<8x8xf32>
  %5 = sdy.propagation_barrier %arg0 allowed_direction=BACKWARD : tensor<8x8xf32>
  %6 = stablehlo.abs %5 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"p", ?}]>]>} : tensor<8x8xf32>
  %7 = sdy.reshard %0 <@mesh, [{?}, {?}]> : tensor<8x8xf32>
  return %3, %4, %6, %7 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Results of main take part, before and after everything else; those of other functions do not.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {"q", ?}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>})
// CHECK-NEXT: %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {"q"}]>]>}
// CHECK-NEXT: return %0, %arg0
func.func @main(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}, tensor<8x8xf32>) {
  %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"q"}]>]>} : tensor<8x8xf32>
  return %0, %arg0 : tensor<8x8xf32>, tensor<8x8xf32>
}
// CHECK-LABEL: func.func @other(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q", ?}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>})
// CHECK-NEXT: %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"q"}]>]>}
// CHECK-NEXT: return %0
func.func @other(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}) {
  %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"q"}]>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// Members of a group have one sharding, from the start; and every change goes to all of them.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @group(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>}, %arg2: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>})
// CHECK-NEXT: %0 = stablehlo.sine %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {"q", ?}]>]>}
// CHECK-NEXT: sdy.sharding_group %arg0 group_id=0
// CHECK-NEXT: sdy.sharding_group %0 group_id=0
// CHECK-NEXT: %1 = stablehlo.custom_call @foo(%arg2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {"q", ?}]>]>}
// CHECK-NEXT: sdy.sharding_group %1 group_id=0
// CHECK-NEXT: %2 = stablehlo.abs %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {"q", ?}]>]>}
// CHECK-NEXT: return %2
func.func @group(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>}, %arg1: tensor<8x8xf32>, %arg2: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.sine %arg1 : tensor<8x8xf32>
  sdy.sharding_group %arg0 group_id=0 : tensor<8x8xf32>
  sdy.sharding_group %0 group_id=0 : tensor<8x8xf32>
  %1 = stablehlo.custom_call @foo(%arg2) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  sdy.sharding_group %1 group_id=0 : tensor<8x8xf32>
  %2 = stablehlo.abs %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"q", ?}]>]>} : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// The rules on ops are used and taken away, unless a user gave them; blocked factors do not propagate.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @rules(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {"q"}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q", ?}, {"p", ?}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q", ?}, {"p", ?}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>})
// CHECK-NEXT: %0 = stablehlo.custom_call @foo(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"q", ?}, {"p", ?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([j, i]) {i=8, j=8}, custom>}
// CHECK-NEXT: %1 = stablehlo.custom_call @foo(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"q", ?}, {"p", ?}]>]>}
// CHECK-NEXT: %2 = stablehlo.custom_call @foo(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} blocked_propagation={j}, custom>}
// CHECK-NEXT: return %0, %1, %2
func.func @rules(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {"q"}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.custom_call @foo(%arg0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([j, i]) {i=8, j=8}, custom>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.custom_call @foo(%arg0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([j, i]) {i=8, j=8}>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.custom_call @foo(%arg0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} blocked_propagation={j}, custom>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
