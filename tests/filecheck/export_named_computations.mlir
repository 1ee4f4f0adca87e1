// RUN: sdy_opt %s -split-input-file -sdy-export-named-computations | FileCheck %s

sdy.mesh @mesh = <["a"=2, "b"=2]>

// Inner computations come first. The function has the name of the computation, or the next free one, and remembers it; its
// thread moves to the function, other attributes go to the call. Shardings of edges count more than those on the op.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0 = call @foo(%arg0) {mhlo.frontend = "z"}
// CHECK-NEXT: %1:2 = call @foo_1(%0, %arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {?}]>, <@mesh, [{?}, {?}]>]>}
// CHECK-NEXT: %2 = call @bar(%1#0)
// CHECK-NEXT: return %2, %1#1
func.func @main(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = sdy.named_computation<"foo">(%arg0) in_shardings=[<@mesh, [{"a"}, {}]>] (%arg1: tensor<8x8xf32>) {
    %6 = sdy.named_computation<"bar">(%arg1) out_shardings=[<@mesh, [{}, {"b"}]>] (%arg2: tensor<8x8xf32>) {
      %7 = stablehlo.abs %arg2 : tensor<8x8xf32>
      sdy.return %7 : tensor<8x8xf32>
    } {execution_thread = "t1", random = 3 : i32} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    sdy.return %6 : tensor<8x8xf32>
  } {mhlo.frontend = "z"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1:2 = sdy.named_computation<"foo">(%0, %arg0) in_shardings=[<@mesh, [{"a"}, {}]>, <@mesh, [{}, {"a"}]>] (%arg1: tensor<8x8xf32>, %arg2: tensor<8x8xf32>) {
    %6 = sdy.data_flow_edge %arg1 sharding=<@mesh, [{"b"}, {?}]> : tensor<8x8xf32>
    %7 = sdy.data_flow_edge %arg2 : tensor<8x8xf32>
    %8 = stablehlo.negate %6 : tensor<8x8xf32>
    sdy.return %8, %7 : tensor<8x8xf32>, tensor<8x8xf32>
  } : (tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  %2 = sdy.data_flow_edge %1#0 sharding=<@mesh, [{"a"}, {?}]> : tensor<8x8xf32>
  %3 = call @bar(%2) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %3, %1#1 : tensor<8x8xf32>, tensor<8x8xf32>
}
// CHECK-LABEL: func.func private @bar(
// CHECK-NEXT: return %arg0
func.func private @bar(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  return %arg0 : tensor<8x8xf32>
}
// CHECK-LABEL: func.func private @bar_0(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {execution_thread = "t1", sdy.original_func_name = "bar"}
// CHECK-NEXT: %0 = stablehlo.abs %arg0
// CHECK-NEXT: return %0
// CHECK-LABEL: func.func private @foo(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x8xf32> attributes {sdy.original_func_name = "foo"}
// CHECK-NEXT: %0 = call @bar_0(%arg0) {random = 3 : i32, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"b"}]>]>}
// CHECK-NEXT: return %0
// CHECK-LABEL: func.func private @foo_1(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>) attributes {sdy.original_func_name = "foo"}
// CHECK-NEXT: %0 = stablehlo.negate %arg0
// CHECK-NEXT: return %0, %arg1

// -----

// Shardings that no edge has stay those of the op.
sdy.mesh @mesh = <["a"=2, "b"=2]>
// CHECK-LABEL: func.func @kept(
// CHECK-NEXT: %0 = call @block(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}]>]>}
// CHECK-NEXT: return %0
func.func @kept(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.named_computation<"block">(%arg0) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[<@mesh, [{"b"}]>] (%arg1: tensor<8xf32>) {
    %2 = sdy.data_flow_edge %arg1 : tensor<8xf32>
    sdy.return %2 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %1 = sdy.data_flow_edge %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}
// CHECK-LABEL: func.func private @block(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> attributes {sdy.original_func_name = "block"}
// CHECK-NEXT: return %arg0
