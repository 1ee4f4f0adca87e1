// RUN: sdy_opt %s -split-input-file -pyshardy-simplify | FileCheck %s

// CHECK: func.func @main(%arg0: tensor<8x4xf32>) -> tensor<4x8xf32> {
// CHECK-NEXT: %cst = stablehlo.constant dense<1.000000e+00> : tensor<8x4xf32>
// CHECK-NEXT: %0 = stablehlo.add %arg0, %cst : tensor<8x4xf32>
// CHECK-NEXT: %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: return %1 : tensor<4x8xf32>
// CHECK-NEXT: }

func.func @main(%x: tensor<8x4xf32>) -> tensor<4x8xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
  %1 = stablehlo.multiply %0, %x : tensor<8x4xf32>
  %2 = stablehlo.add %0, %1 : tensor<8x4xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}

// -----

// A tensor without elements is a constant, but for one of a dynamic shape, which no constant has.
// CHECK: func.func @main(%arg0: tensor<0x4xf32>, %arg1: tensor<0x?xf32>) -> (tensor<0x4xf32>, tensor<0x?xf32>) {
// CHECK-NEXT: %cst = stablehlo.constant dense<> : tensor<0x4xf32>
// CHECK-NEXT: %0 = stablehlo.cosine %arg1 : tensor<0x?xf32>
// CHECK-NEXT: return %cst, %0 : tensor<0x4xf32>, tensor<0x?xf32>
func.func @main(%x: tensor<0x4xf32>, %y: tensor<0x?xf32>) -> (tensor<0x4xf32>, tensor<0x?xf32>) {
  %0 = stablehlo.cosine %x : tensor<0x4xf32>
  %1 = stablehlo.cosine %y : tensor<0x?xf32>
  return %0, %1 : tensor<0x4xf32>, tensor<0x?xf32>
}
