// RUN: sdy_opt %s -sdy-constant-or-scalar-splitter | FileCheck %s

// A broadcast of a scalar that is no constant is copied for every use; the scalar is not, and neither is what computes it.
// CHECK-LABEL: func.func @broadcast_scalar(
// CHECK-NEXT: %0 = stablehlo.sine %arg0
// CHECK-NEXT: %1 = stablehlo.broadcast_in_dim %0, dims = [] {note = "kept"}
// CHECK-NEXT: sdy.sharding_group %1 group_id=1
// CHECK-NEXT: %2 = stablehlo.broadcast_in_dim %0, dims = [] {note = "kept"}
// CHECK-NEXT: sdy.sharding_group %2 group_id=1
// CHECK-NEXT: %3 = stablehlo.broadcast_in_dim %0, dims = [] {note = "kept"}
// CHECK-NEXT: sdy.sharding_group %3 group_id=1
// CHECK-NEXT: %4 = stablehlo.add %1, %arg1
// CHECK-NEXT: %5 = stablehlo.multiply %2, %4
// CHECK-NEXT: return %3, %5
func.func @broadcast_scalar(%arg0: tensor<f32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.sine %arg0 : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] {note = "kept"} : (tensor<f32>) -> tensor<4xf32>
  sdy.sharding_group %1 group_id=1 : tensor<4xf32>
  %2 = stablehlo.add %1, %arg1 : tensor<4xf32>
  %3 = stablehlo.multiply %1, %2 : tensor<4xf32>
  return %1, %3 : tensor<4xf32>, tensor<4xf32>
}

// One op that uses it twice gets two copies. A broadcast of something else is not copied.
// CHECK-LABEL: func.func @twice(
// CHECK-NEXT: %0 = stablehlo.broadcast_in_dim %arg0, dims = []
// CHECK-NEXT: %1 = stablehlo.broadcast_in_dim %arg0, dims = []
// CHECK-NEXT: %2 = stablehlo.add %0, %1
// CHECK-NEXT: %3 = stablehlo.broadcast_in_dim %arg1, dims = [0]
// CHECK-NEXT: %4 = stablehlo.add %3, %3
// CHECK-NEXT: return %2, %4
func.func @twice(%arg0: tensor<f32>, %arg1: tensor<1xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.add %0, %0 : tensor<4xf32>
  %2 = stablehlo.broadcast_in_dim %arg1, dims = [0] : (tensor<1xf32>) -> tensor<4xf32>
  %3 = stablehlo.add %2, %2 : tensor<4xf32>
  return %1, %3 : tensor<4xf32>, tensor<4xf32>
}

// Unused, it goes.
// CHECK-LABEL: func.func @unused(
// CHECK-NEXT: return
func.func @unused(%arg0: tensor<f32>) {
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<4xf32>
  sdy.sharding_group %0 group_id=2 : tensor<4xf32>
  return
}
