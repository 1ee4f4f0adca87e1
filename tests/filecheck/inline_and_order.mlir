// RUN: sdy_opt %s -pyshardy-inline-and-order | FileCheck %s

// CHECK: func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> tensor<8xf32> {
// CHECK-NEXT: %0 = stablehlo.add %arg0, %arg0 : tensor<8xf32>
// CHECK-NEXT: %1 = stablehlo.tanh %arg1 : tensor<8xf32>
// CHECK-NEXT: %2 = stablehlo.subtract %0, %1 : tensor<8xf32>
// CHECK-NEXT: return %2 : tensor<8xf32>
// CHECK-NEXT: }

func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %y : tensor<8xf32>
  %1 = func.call @twice(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = stablehlo.subtract %1, %0 : tensor<8xf32>
  return %2 : tensor<8xf32>
}
func.func private @twice(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.add %x, %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
