// RUN: sdy_opt %s -split-input-file -sdy-remove-size-one-axes | FileCheck %s

// The mesh keeps its axes; openness and priorities of dimensions stay, but a priority needs an open dimension or an axis.
// CHECK: sdy.mesh @mesh = <["x"=4, "o"=1, "y"=4]>
sdy.mesh @mesh = <["x"=4, "o"=1, "y"=4]>
sdy.mesh @other = <["x"=4]>

// CHECK-LABEL: func.func @dims(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(1)2, ?}p2, {}], replicated={"x"}>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}p2, {}], unreduced={"x"}>}, %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}p2, {"x"}p0]>}, %arg3: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@other, [{"x"}p1, {?}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}p1, {?}]>})
// CHECK-NEXT: return %arg0
func.func @dims(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(1)2, ?}p2, {"o"}p0], replicated={"x"}>},
                %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"o", ?}p2, {}], unreduced={"x"}>},
                %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}p2, {"x"}p0], unreduced={"o"}>},
                %arg3: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@other, [{"x"}p1, {?}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "o", "y"}p1, {?}]>}) {
  return %arg0 : tensor<8x8xf32>
}

// Every place that holds a sharding; not manual axes.
// CHECK-LABEL: func.func @places(
// CHECK-NEXT: %0 = stablehlo.custom_call @foo(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y", ?}]>]>}
// CHECK-NEXT: %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x", "o"} (%arg1: tensor<4x8xf32>) {
// CHECK-NEXT: sdy.return %arg1
// CHECK-NEXT: }
// CHECK-NEXT: %2 = sdy.sharding_constraint %1 <@mesh, [{?}, {}]>
// CHECK-NEXT: %3 = sdy.named_computation<"foo">(%2) in_shardings=[<@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {?}]>] (%arg1: tensor<16x8xf32>) {
// CHECK-NEXT: sdy.return %arg1
// CHECK-NEXT: }
// CHECK-NEXT: return %3
func.func @places(%arg0: tensor<16x8xf32>) -> tensor<16x8xf32> {
  %0 = stablehlo.custom_call @foo(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"o"}, {"y", ?}]>]>} : (tensor<16x8xf32>) -> tensor<16x8xf32>
  %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"o", "x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}], replicated={"o"}>] manual_axes={"x", "o"} (%arg1: tensor<4x8xf32>) {
    sdy.return %arg1 : tensor<4x8xf32>
  } : (tensor<16x8xf32>) -> tensor<16x8xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{?}, {"o"}p3]> : tensor<16x8xf32>
  %3 = sdy.named_computation<"foo">(%2) in_shardings=[<@mesh, [{"o"}, {}]>] out_shardings=[<@mesh, [{}, {"o", ?}]>] (%arg1: tensor<16x8xf32>) {
    sdy.return %arg1 : tensor<16x8xf32>
  } : (tensor<16x8xf32>) -> tensor<16x8xf32>
  return %3 : tensor<16x8xf32>
}

// A mesh that is written in the sharding is treated like the others.
// CHECK-LABEL: func.func @inlined(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["one"=1, "x"=2]>, [{"x"}]>}) -> tensor<8xf32>
func.func @inlined(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["one"=1, "x"=2]>, [{"one", "x"}]>}) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}

// -----

// Only a mesh op with such an axis starts the rewrite.
sdy.mesh @mesh = <["x"=4]>
// CHECK-LABEL: func.func @inlined_only(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["one"=1, "x"=2]>, [{"one", "x"}]>}) -> tensor<8xf32>
func.func @inlined_only(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["one"=1, "x"=2]>, [{"one", "x"}]>}) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
