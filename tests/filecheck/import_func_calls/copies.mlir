// RUN: sdy_opt %s -sdy-import-func-calls | FileCheck %s
// RUN: sdy_opt %s -verify-diagnostics -sdy-import-func-calls

// Of several calls the first takes the body, the others copy it; one warning says so.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0 = sdy.named_computation<"shared">(%arg0) (%arg1: tensor<8xf32>) {
// CHECK-NEXT: %6 = sdy.data_flow_edge %arg1
// CHECK-NEXT: %7 = stablehlo.sine %6
// CHECK-NEXT: sdy.return %7
// CHECK-NEXT: }
// CHECK-NEXT: %1 = sdy.data_flow_edge %0
// CHECK-NEXT: %2 = sdy.named_computation<"shared">(%1) (%arg1: tensor<8xf32>) {
// CHECK-NEXT: %6 = sdy.data_flow_edge %arg1
// CHECK-NEXT: %7 = stablehlo.sine %6
// CHECK-NEXT: sdy.return %7
// CHECK-NEXT: }
// CHECK-NEXT: %3 = sdy.data_flow_edge %2
// CHECK-NEXT: %4 = sdy.named_computation<"shared">(%3) (%arg1: tensor<8xf32>) {
// CHECK-NEXT: %6 = sdy.data_flow_edge %arg1
// CHECK-NEXT: %7 = stablehlo.sine %6
// CHECK-NEXT: sdy.return %7
// CHECK-NEXT: }
// CHECK-NEXT: %5 = sdy.data_flow_edge %4
// CHECK-NEXT: return %5
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @shared(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  // expected-warning@+1 {{function @shared is called several times: its body is copied}}
  %1 = call @shared(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = call @shared(%1) : (tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}
func.func private @shared(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
