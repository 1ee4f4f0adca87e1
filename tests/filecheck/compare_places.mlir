// RUN: sdy_opt %s -pyshardy-compare-places | FileCheck %s

// The gradient of `take_along_axis` with one index per row: a sum with zeros is the update itself.
// CHECK: func.func @main(%arg0: tensor<4x1x1xi32>, %arg1: tensor<4x1xf32>) -> tensor<4x8xf32> {
// CHECK-NEXT: %cst = stablehlo.constant dense<0.000000e+00> : tensor<4x8xf32>
// CHECK-NEXT: %0 = stablehlo.reshape %arg0 : (tensor<4x1x1xi32>) -> tensor<4xi32>
// CHECK-NEXT: %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<4xi32>) -> tensor<4x8xi32>
// CHECK-NEXT: %2 = stablehlo.reshape %arg1 : (tensor<4x1xf32>) -> tensor<4xf32>
// CHECK-NEXT: %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: %4 = stablehlo.iota dim = 1 : tensor<4x8xi32>
// CHECK-NEXT: %5 = stablehlo.compare EQ, %1, %4 : (tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8xi1>
// CHECK-NEXT: %6 = stablehlo.select %5, %3, %cst : tensor<4x8xi1>, tensor<4x8xf32>
// CHECK-NEXT: return %6 : tensor<4x8xf32>
func.func @main(%t: tensor<4x1x1xi32>, %u: tensor<4x1xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<4x8xf32>
  %1 = "stablehlo.scatter"(%0, %t, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %2 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %2 : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<4x1x1xi32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// Another start, and another way to combine, along the first dimension.
// CHECK: func.func @largest(
// CHECK: %[[NEW:.*]] = stablehlo.maximum %arg0, %{{.*}} : tensor<8x4xf32>
// CHECK-NEXT: stablehlo.select %{{.*}}, %[[NEW]], %arg0 : tensor<8x4xi1>, tensor<8x4xf32>
func.func @largest(%x: tensor<8x4xf32>, %t: tensor<1x4x1xi32>, %u: tensor<1x4xf32>) -> tensor<8x4xf32> {
  %1 = "stablehlo.scatter"(%x, %t, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], input_batching_dims = [1], scatter_indices_batching_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %2 = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %2 : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<1x4x1xi32>, tensor<1x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// An update that overwrites is taken as it is.
// CHECK: func.func @over(
// CHECK: %[[UPDATE:.*]] = stablehlo.broadcast_in_dim %{{.*}}, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
// CHECK: stablehlo.select %{{.*}}, %[[UPDATE]], %arg0 : tensor<4x8xi1>, tensor<4x8xf32>
func.func @over(%x: tensor<4x8xf32>, %t: tensor<4x1x1xi32>, %u: tensor<4x1xf32>) -> tensor<4x8xf32> {
  %1 = "stablehlo.scatter"(%x, %t, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<4x1x1xi32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// The operands keep their order.
// CHECK: func.func @less(
// CHECK: stablehlo.subtract %{{.*}}, %arg0 : tensor<4x8xf32>
func.func @less(%x: tensor<4x8xf32>, %t: tensor<4x1x1xi32>, %u: tensor<4x1xf32>) -> tensor<4x8xf32> {
  %1 = "stablehlo.scatter"(%x, %t, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %2 = stablehlo.subtract %b, %a : tensor<f32>
      stablehlo.return %2 : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<4x1x1xi32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// Two updates per row stay a scatter, and so do updates that lack the dimension of one element.
// CHECK: func.func @two(
// CHECK: stablehlo.scatter
func.func @two(%x: tensor<4x8xf32>, %t: tensor<4x2x1xi32>, %u: tensor<4x2xf32>) -> tensor<4x8xf32> {
  %1 = "stablehlo.scatter"(%x, %t, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %2 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %2 : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<4x2x1xi32>, tensor<4x2xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// CHECK: func.func @without(
// CHECK: stablehlo.scatter
func.func @without(%x: tensor<4x8xf32>, %t: tensor<4x1xi32>, %u: tensor<4xf32>) -> tensor<4x8xf32> {
  %1 = "stablehlo.scatter"(%x, %t, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %2 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %2 : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
