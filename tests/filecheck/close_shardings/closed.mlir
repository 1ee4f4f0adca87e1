// RUN: sdy_opt %s -split-input-file -sdy-close-shardings | FileCheck %s

// Every dimension is closed, with its axes and priority; replicated axes go, unreduced ones stay.
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
// CHECK-LABEL: func.func @closed(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}p1]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}], unreduced={"b", "c"}>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>})
// CHECK-NEXT: %0 = stablehlo.add %arg0, %arg1
// CHECK-NEXT: return %0
func.func @closed(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}p1], replicated={"b"}>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}], unreduced={"b", "c"}>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}, {?}]>}) {
  %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Wherever a sharding is: several results, none, edges, constraints, collectives, computations, loops.
// CHECK-LABEL: func.func @places(
// CHECK-NEXT: %0:2 = stablehlo.custom_call @foo(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>, <@mesh, [{}, {}]>]>}
// CHECK-NEXT: stablehlo.custom_call @bar(%0#0) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@device, []>]>}
// CHECK-NEXT: %1 = sdy.sharding_constraint %0#1 <@mesh, [{"b"}, {}]>
// CHECK-NEXT: %2 = sdy.reshard %1 <@mesh, [{"b"}, {}]>
// CHECK-NEXT: %3 = sdy.all_gather [{"b"}, {}] %2 out_sharding=<@mesh, [{}, {}]>
// CHECK-NEXT: %4 = sdy.manual_computation(%3) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a", "b"}, {}]>] manual_axes={"a"} (%arg1: tensor<4x8xf32>) {
// CHECK-NEXT: %7 = stablehlo.sine %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"b"}]>]>}
// CHECK-NEXT: sdy.return %7
// CHECK-NEXT: }
// CHECK-NEXT: %5 = sdy.named_computation<"foo">(%4) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{}, {}]>] (%arg1: tensor<8x8xf32>) {
// CHECK-NEXT: sdy.return %arg1
// CHECK-NEXT: }
// CHECK-NEXT: %6 = stablehlo.while(%iterArg = %5) : tensor<8x8xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// CHECK-NEXT: cond {
// CHECK-NEXT: %c = stablehlo.constant dense<false>
// CHECK-NEXT: stablehlo.return %c
// CHECK-NEXT: } do {
// CHECK-NEXT: stablehlo.return %iterArg
// CHECK-NEXT: }
// CHECK-NEXT: return %6
func.func @places(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0:2 = stablehlo.custom_call @foo(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>, <@mesh, [{?}, {?}]>]>} : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  stablehlo.custom_call @bar(%0#0) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@device, []>]>} : (tensor<8x8xf32>) -> ()
  %1 = sdy.sharding_constraint %0#1 <@mesh, [{"b", ?}, {?}]> : tensor<8x8xf32>
  %2 = sdy.reshard %1 <@mesh, [{"b", ?}, {?}]> : tensor<8x8xf32>
  %3 = sdy.all_gather [{"b"}, {}] %2 out_sharding=<@mesh, [{?}, {?}]> : tensor<8x8xf32>
  %4 = sdy.manual_computation(%3) in_shardings=[<@mesh, [{"a", ?}, {?}]>] out_shardings=[<@mesh, [{"a", "b", ?}, {?}], replicated={"c"}>] manual_axes={"a"} (%arg1: tensor<4x8xf32>) {
    %7 = stablehlo.sine %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"b", ?}]>]>} : tensor<4x8xf32>
    sdy.return %7 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = sdy.named_computation<"foo">(%4) in_shardings=[<@mesh, [{"a", ?}, {?}]>] out_shardings=[<@mesh, [{?}, {?}]>] (%arg1: tensor<8x8xf32>) {
    sdy.return %arg1 : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %6 = stablehlo.while(%iterArg = %5) : tensor<8x8xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
  cond {
    %7 = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %7 : tensor<i1>
  } do {
    stablehlo.return %iterArg : tensor<8x8xf32>
  }
  return %6 : tensor<8x8xf32>
}
sdy.mesh @device = <[], device_ids=[0]>

// What has no sharding gets none.
// CHECK-LABEL: func.func @none(
// CHECK-NEXT: %0 = stablehlo.sine %arg0
// CHECK-NEXT: return %0
func.func @none(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.sine %arg0 : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
