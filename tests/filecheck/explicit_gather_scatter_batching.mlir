// RUN: sdy_opt %s -split-input-file -sdy-explicit-gather-scatter-batching | FileCheck %s

// A row that is indexed by its own number becomes a batch; the number drops out of the indices, and what is dead goes.
// CHECK-LABEL: func.func @gather(
// CHECK-NEXT: %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = true, slice_sizes = array<i64: 1, 1, 5>}> {note = "kept"} : (tensor<4x8x5xf32>, tensor<4x3x1xi32>) -> tensor<4x3x5xf32>
// CHECK-NEXT: return %0
func.func @gather(%arg0: tensor<4x8x5xf32>, %arg1: tensor<4x3x1xi32>) -> tensor<4x3x5xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<4xi32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<4xi32>) -> tensor<4x3x1xi32>
  %2 = stablehlo.concatenate %arg1, %1, dim = 2 : (tensor<4x3x1xi32>, tensor<4x3x1xi32>) -> tensor<4x3x2xi32>
  %3 = "stablehlo.gather"(%arg0, %2) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0, 1], start_index_map = [1, 0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 5>, indices_are_sorted = true}> {note = "kept"} : (tensor<4x8x5xf32>, tensor<4x3x2xi32>) -> tensor<4x3x5xf32>
  return %3 : tensor<4x3x5xf32>
}

// So with a scatter, which keeps its body; constants go to the start of the function.
// CHECK-LABEL: func.func @scatter(
// CHECK-NEXT: %cst = stablehlo.constant dense<1.000000e+00>
// CHECK-NEXT: %0:2 = "stablehlo.scatter"(%arg0, %arg1, %arg2, %arg3, %arg4) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = true}> ({
// CHECK-NEXT: ^bb0(%arg5: tensor<f32>, %arg6: tensor<i32>, %arg7: tensor<f32>, %arg8: tensor<i32>):
// CHECK-NEXT: %1 = stablehlo.add %arg5, %cst
// CHECK-NEXT: stablehlo.return %1, %arg6
// CHECK: return %0#0, %0#1
func.func @scatter(%arg0: tensor<4x8x5xf32>, %arg1: tensor<4x8x5xi32>, %arg2: tensor<4x3x1xi32>, %arg3: tensor<4x3x5xf32>, %arg4: tensor<4x3x5xi32>) -> (tensor<4x8x5xf32>, tensor<4x8x5xi32>) {
  %0 = stablehlo.iota dim = 0 : tensor<4x3x1xi32>
  %1 = stablehlo.concatenate %0, %arg2, dim = 2 : (tensor<4x3x1xi32>, tensor<4x3x1xi32>) -> tensor<4x3x2xi32>
  %2:2 = "stablehlo.scatter"(%arg0, %arg1, %1, %arg3, %arg4) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2>, unique_indices = true}> ({
  ^bb0(%arg5: tensor<f32>, %arg6: tensor<i32>, %arg7: tensor<f32>, %arg8: tensor<i32>):
    %cst = stablehlo.constant dense<1.0> : tensor<f32>
    %3 = stablehlo.add %arg5, %cst : tensor<f32>
    stablehlo.return %3, %arg6 : tensor<f32>, tensor<i32>
  }) : (tensor<4x8x5xf32>, tensor<4x8x5xi32>, tensor<4x3x2xi32>, tensor<4x3x5xf32>, tensor<4x3x5xi32>) -> (tensor<4x8x5xf32>, tensor<4x8x5xi32>)
  return %2#0, %2#1 : tensor<4x8x5xf32>, tensor<4x8x5xi32>
}

// Where the indices are in one piece, what comes before and behind the number is cut out of them. The number is seen
// through reshapes, broadcasts, the middle operand of a clamp, and one branch of a select.
// CHECK-LABEL: func.func @cut(
// CHECK: %[[CLAMP:.*]] = stablehlo.clamp
// CHECK-NEXT: %[[FIRST:.*]] = stablehlo.slice %[[CLAMP]] [0:4, 0:3, 0:1]
// CHECK-NEXT: %[[LAST:.*]] = stablehlo.slice %[[CLAMP]] [0:4, 0:3, 2:3]
// CHECK-NEXT: %[[REST:.*]] = stablehlo.concatenate %[[FIRST]], %[[LAST]], dim = 2
// CHECK-NEXT: %[[RESULT:.*]] = "stablehlo.gather"(%arg0, %[[REST]]) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1, 3], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1, 3], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 5, 1>}>
// CHECK-NEXT: return %[[RESULT]]
func.func @cut(%arg0: tensor<4x8x5x7xf32>, %arg1: tensor<4x3x3xi32>, %arg2: tensor<i1>) -> tensor<4x3x5xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<4x3x3xi32>
  %1 = stablehlo.select %arg2, %0, %arg1 : tensor<i1>, tensor<4x3x3xi32>
  %2 = stablehlo.clamp %arg1, %1, %arg1 : tensor<4x3x3xi32>
  %3 = "stablehlo.gather"(%arg0, %2) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0, 1, 3], start_index_map = [1, 0, 3], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 5, 1>}> : (tensor<4x8x5x7xf32>, tensor<4x3x3xi32>) -> tensor<4x3x5xf32>
  return %3 : tensor<4x3x5xf32>
}

// Other components, other dimensions of an iota, other numbers of rows, and lower bounds do not count.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: batching_dims
// CHECK: return
func.func @others(%arg0: tensor<4x4xf32>, %arg1: tensor<4x1xi32>, %arg2: tensor<5x4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.iota dim = 0 : tensor<4x1xi32>
  %1 = stablehlo.concatenate %arg1, %0, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %2 = "stablehlo.gather"(%arg0, %1) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<4x4xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  %3 = stablehlo.iota dim = 1 : tensor<4x2xi32>
  %4 = "stablehlo.gather"(%arg0, %3) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<4x4xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  %5 = "stablehlo.gather"(%arg2, %1) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [1, 0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<5x4xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  %6 = stablehlo.clamp %0, %arg1, %0 : tensor<4x1xi32>
  %7 = stablehlo.concatenate %arg1, %6, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %8 = "stablehlo.gather"(%arg0, %7) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [1, 0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<4x4xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  return %2, %4, %5, %8 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
