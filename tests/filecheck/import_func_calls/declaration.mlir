// RUN: sdy_opt %s -sdy-import-func-calls | FileCheck %s
// DIFFERS: the reference makes a named computation without a body, which is not valid; a call of a declaration stays here.

// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0 = call @somewhere(%arg0)
// CHECK-NEXT: return %0
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @somewhere(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// CHECK: func.func private @somewhere
func.func private @somewhere(tensor<8xf32>) -> tensor<8xf32>
