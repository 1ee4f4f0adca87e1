// RUN: sdy_opt %s -pyshardy-legalize-chlo | FileCheck %s

// CHECK: func.func @main(%arg0: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
// CHECK-NEXT: %0 = stablehlo.multiply %arg0, %arg0 : tensor<8x4xf32>
// CHECK-NEXT: %1 = mhlo.erf %arg0 : tensor<8x4xf32>
// CHECK-NEXT: %2 = stablehlo.tan %arg0 : tensor<8x4xf32>
// CHECK-NEXT: return %0, %1, %2 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
// CHECK-NEXT: }

func.func @main(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = chlo.square %x : tensor<8x4xf32> -> tensor<8x4xf32>
  %1 = chlo.erf %x : tensor<8x4xf32> -> tensor<8x4xf32>
  %2 = chlo.tan %x : tensor<8x4xf32> -> tensor<8x4xf32>
  return %0, %1, %2 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}

// CHECK-LABEL: func.func @kept(
// CHECK-NEXT: %0 = chlo.mulhi %arg0, %arg0 : tensor<8xi32>, tensor<8xi32> -> tensor<8xi32>
// CHECK-NEXT: %1 = chlo.bessel_i1e %arg1 : tensor<8xcomplex<f32>> -> tensor<8xcomplex<f32>>
// CHECK-NEXT: return %0, %1
func.func @kept(%x: tensor<8xi32>, %y: tensor<8xcomplex<f32>>) -> (tensor<8xi32>, tensor<8xcomplex<f32>>) {
  %0 = chlo.mulhi %x, %x : tensor<8xi32>, tensor<8xi32> -> tensor<8xi32>
  %1 = chlo.bessel_i1e %y : tensor<8xcomplex<f32>> -> tensor<8xcomplex<f32>>
  return %0, %1 : tensor<8xi32>, tensor<8xcomplex<f32>>
}
