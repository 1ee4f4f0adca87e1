// RUN: sdy_opt %s -pyshardy-expand | FileCheck %s

// CHECK: func.func @main(%arg0: tensor<1x4xf32>, %arg1: tensor<i1>) -> tensor<8x4xf32> {
// CHECK-NEXT: %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<1x4xf32>
// CHECK-NEXT: %1 = stablehlo.reshape %0 : (tensor<1x4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
// CHECK-NEXT: %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
// CHECK-NEXT: %4 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<i1>) -> tensor<8x4xi1>
// CHECK-NEXT: %5 = stablehlo.select %4, %2, %3 : tensor<8x4xi1>, tensor<8x4xf32>
// CHECK-NEXT: return %5 : tensor<8x4xf32>
// CHECK-NEXT: }

func.func @main(%x: tensor<1x4xf32>, %p: tensor<i1>) -> tensor<8x4xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.constant dense<2.0> : tensor<8x4xf32>
  %2 = stablehlo.select %p, %0, %1 : tensor<i1>, tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}
