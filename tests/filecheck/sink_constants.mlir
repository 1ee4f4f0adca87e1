// RUN: sdy_opt %s -pyshardy-sink-constants | FileCheck %s

// CHECK: func.func @main(%arg0: tensor<i1>, %arg1: tensor<8xf32>) -> tensor<8xf32> {
// CHECK-NEXT: %0 = "stablehlo.if"(%arg0) ({
// CHECK-NEXT: %cst = stablehlo.constant dense<1.000000e+00> : tensor<8xf32>
// CHECK-NEXT: %1 = stablehlo.add %arg1, %cst : tensor<8xf32>
// CHECK-NEXT: stablehlo.return %1 : tensor<8xf32>
// CHECK-NEXT: }, {
// CHECK-NEXT: stablehlo.return %arg1 : tensor<8xf32>
// CHECK-NEXT: }) : (tensor<i1>) -> tensor<8xf32>
// CHECK-NEXT: return %0 : tensor<8xf32>
// CHECK-NEXT: }

func.func @main(%p: tensor<i1>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<8xf32>
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.add %x, %one : tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }, {
    stablehlo.return %x : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
