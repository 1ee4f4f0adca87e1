// RUN: sdy_opt %s -split-input-file -sdy-import-func-calls | FileCheck %s
// RUN: sdy_opt %s -split-input-file -sdy-import-func-calls='add-data-flow-edges-on-named-computations=false' | FileCheck %s --check-prefix=PLAIN

sdy.mesh @mesh = <["p"=2, "q"=2]>

// The computation has the original name of the callee, its argument shardings (open ones where some are missing), its
// thread, and the call's attributes; its result shardings are those of the call. Result shardings of the callee, and its
// other attributes, are lost.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0 = sdy.named_computation<"f">(%arg0, %arg1) in_shardings=[<@mesh, [{"q"}]>, <@mesh, [{?}]>] out_shardings=[<@mesh, [{"p"}]>] (%arg2: tensor<8xf32>, %arg3: tensor<8xf32>) {
// CHECK-NEXT: %4 = sdy.data_flow_edge %arg2 sharding=<@mesh, [{"q"}]>
// CHECK-NEXT: %5 = sdy.data_flow_edge %arg3 sharding=<@mesh, [{?}]>
// CHECK-NEXT: %6 = stablehlo.add %4, %5
// CHECK-NEXT: sdy.return %6
// CHECK-NEXT: } {execution_thread = "host", mhlo.frontend_attributes = {k = "v"}}
// CHECK-NEXT: %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"p"}]>
// CHECK-NEXT: %2 = sdy.named_computation<"f">(%1) (%arg2: tensor<8xf32>) {
// CHECK-NEXT: %4 = sdy.data_flow_edge %arg2
// CHECK-NEXT: sdy.return %4
// CHECK-NEXT: }
// CHECK-NEXT: %3 = sdy.data_flow_edge %2
// CHECK-NEXT: return %3
// PLAIN-LABEL: func.func @main(
// PLAIN-NEXT: %0 = sdy.named_computation<"f">(%arg0, %arg1) in_shardings=[<@mesh, [{"q"}]>, <@mesh, [{?}]>] out_shardings=[<@mesh, [{"p"}]>] (%arg2: tensor<8xf32>, %arg3: tensor<8xf32>) {
// PLAIN-NEXT: %2 = stablehlo.add %arg2, %arg3
// PLAIN-NEXT: sdy.return %2
// PLAIN-NEXT: } {execution_thread = "host", mhlo.frontend_attributes = {k = "v"}}
// PLAIN-NEXT: %1 = sdy.named_computation<"f">(%0) (%arg2: tensor<8xf32>) {
// PLAIN-NEXT: sdy.return %arg2
// PLAIN-NEXT: }
// PLAIN-NEXT: return %1
func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%arg0, %arg1) {mhlo.frontend_attributes = {k = "v"}, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}]>]>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = call @f_9(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @f(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}]>, some.attribute = 1 : i32}, %arg1: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}]>}) attributes {execution_thread = "host", other = 1 : i32} {
  %0 = stablehlo.add %arg0, %arg1 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @f_9(%arg0: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}]>}) attributes {sdy.original_func_name = "f"} {
  return %arg0 : tensor<8xf32>
}
// CHECK-NOT: @f
// PLAIN-NOT: @f

// -----

// Called functions are replaced from the inside out; public ones go as well, but what nobody calls stays.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0 = sdy.named_computation<"outer">(%arg0) (%arg1: tensor<8xf32>) {
// CHECK-NEXT: %2 = sdy.data_flow_edge %arg1
// CHECK-NEXT: %3 = sdy.named_computation<"inner">(%2) (%arg2: tensor<8xf32>) {
// CHECK-NEXT: %5 = sdy.data_flow_edge %arg2
// CHECK-NEXT: %6 = stablehlo.sine %5
// CHECK-NEXT: sdy.return %6
// CHECK-NEXT: }
// CHECK-NEXT: %4 = sdy.data_flow_edge %3
// CHECK-NEXT: sdy.return %4
// CHECK-NEXT: }
// CHECK-NEXT: %1 = sdy.data_flow_edge %0
// CHECK-NEXT: return %1
// PLAIN-LABEL: func.func @main(
// PLAIN-NEXT: %0 = sdy.named_computation<"outer">(%arg0) (%arg1: tensor<8xf32>) {
// PLAIN-NEXT: %1 = sdy.named_computation<"inner">(%arg1) (%arg2: tensor<8xf32>) {
// PLAIN-NEXT: %2 = stablehlo.sine %arg2
// PLAIN-NEXT: sdy.return %2
// PLAIN-NEXT: }
// PLAIN-NEXT: sdy.return %1
// PLAIN-NEXT: }
// PLAIN-NEXT: return %0
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @outer(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func @outer(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @inner(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @inner(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
// CHECK: func.func @nobody_calls
// PLAIN: func.func @nobody_calls
func.func @nobody_calls() {
  return
}

// -----

// An existing named computation gets edges too, if edges are asked for.
sdy.mesh @mesh = <["p"=2, "q"=2]>
sdy.mesh @device = <[], device_ids=[0]>
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0 = sdy.named_computation<"existing">(%arg0) (%arg1: tensor<8xf32>) {
// CHECK-NEXT: %2 = sdy.data_flow_edge %arg1
// CHECK-NEXT: %3 = sdy.named_computation<"single">(%2) (%arg2: tensor<8xf32>) {
// CHECK-NEXT: %5 = sdy.data_flow_edge %arg2
// CHECK-NEXT: sdy.return %5
// CHECK-NEXT: }
// CHECK-NEXT: %4 = sdy.data_flow_edge %3
// CHECK-NEXT: sdy.return %4
// CHECK-NEXT: }
// CHECK-NEXT: %1 = sdy.data_flow_edge %0
// CHECK-NEXT: return %1
// PLAIN-LABEL: func.func @main(
// PLAIN-NEXT: %0 = sdy.named_computation<"existing">(%arg0) (%arg1: tensor<8xf32>) {
// PLAIN-NEXT: %1 = sdy.named_computation<"single">(%arg1) (%arg2: tensor<8xf32>) {
// PLAIN-NEXT: sdy.return %arg2
// PLAIN-NEXT: }
// PLAIN-NEXT: sdy.return %1
// PLAIN-NEXT: }
// PLAIN-NEXT: return %0
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.named_computation<"existing">(%arg0) (%arg1: tensor<8xf32>) {
    %1 = func.call @single(%arg1) : (tensor<8xf32>) -> tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// Shardings on one device do not make it into the computation.
func.func private @single(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@device, []>}) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
