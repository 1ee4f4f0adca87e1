// RUN: sdy_opt %s -pyshardy-restore-chlo | FileCheck %s

// CHECK: func.func @main(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
// CHECK-NEXT: %0 = chlo.erf %arg0 : tensor<8x4xf32> -> tensor<8x4xf32>
// CHECK-NEXT: return %0 : tensor<8x4xf32>
// CHECK-NEXT: }

func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = mhlo.erf %x : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
