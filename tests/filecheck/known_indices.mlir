// RUN: sdy_opt %s -split-input-file -pyshardy-known-indices | FileCheck %s

// A component that is the number of the row, wrapped as JAX does, makes a batching dimension.
// CHECK: sdy.mesh @mesh = <["a"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8x6x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}, {}]>}, %arg1: tensor<8x1xi32>) -> tensor<8x4xf32> {
// CHECK-NEXT: %0 = stablehlo.iota dim = 0 : tensor<8xi32>
// CHECK-NEXT: %c = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<8xi32>
// CHECK-NEXT: %2 = stablehlo.compare LT, %0, %1 : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
// CHECK-NEXT: %3 = stablehlo.select %2, %1, %0 : tensor<8xi1>, tensor<8xi32>
// CHECK-NEXT: %4 = stablehlo.reshape %3 : (tensor<8xi32>) -> tensor<8x1xi32>
// CHECK-NEXT: %5 = stablehlo.concatenate %4, %arg1, dim = 1 : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
// CHECK-NEXT: %6 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1, 4>}> : (tensor<8x6x4xf32>, tensor<8x1xi32>) -> tensor<8x4xf32>
// CHECK-NEXT: return %6 : tensor<8x4xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x6x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}, {}]>}, %i: tensor<8x1xi32>) -> tensor<8x4xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<8xi32>
  %1 = stablehlo.constant dense<0> : tensor<i32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i32>) -> tensor<8xi32>
  %3 = stablehlo.compare LT, %0, %2 : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %4 = stablehlo.select %3, %2, %0 : tensor<8xi1>, tensor<8xi32>
  %5 = stablehlo.reshape %4 : (tensor<8xi32>) -> tensor<8x1xi32>
  %6 = stablehlo.concatenate %5, %i, dim = 1 : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
  %7 = "stablehlo.gather"(%x, %6) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1, 4>}> : (tensor<8x6x4xf32>, tensor<8x2xi32>) -> tensor<8x4xf32>
  return %7 : tensor<8x4xf32>
}

// -----

// Components that are left are joined again; the second dimension stays an index, as it is not sharded.
// CHECK: sdy.mesh @mesh = <["a"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<6x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}, {}]>}, %arg1: tensor<8x1xi32>, %arg2: tensor<8xf32>) -> tensor<6x8x4xf32> {
// CHECK-NEXT: %0 = stablehlo.iota dim = 0 : tensor<8x1xi32>
// CHECK-NEXT: %1 = stablehlo.concatenate %arg1, %0, %arg1, dim = 1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<8x1xi32>, tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x3xi32>
// CHECK-NEXT: %2 = stablehlo.concatenate %arg1, %arg1, dim = 1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
// CHECK-NEXT: %3 = "stablehlo.scatter"(%arg0, %2, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 2], input_batching_dims = [1], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [0, 2], index_vector_dim = 1>}> ({
// CHECK-NEXT: ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
// CHECK-NEXT: %4 = stablehlo.add %arg3, %arg4 : tensor<f32>
// CHECK-NEXT: stablehlo.return %4 : tensor<f32>
// CHECK-NEXT: }) : (tensor<6x8x4xf32>, tensor<8x2xi32>, tensor<8xf32>) -> tensor<6x8x4xf32>
// CHECK-NEXT: return %3 : tensor<6x8x4xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<6x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}, {}]>}, %i: tensor<8x1xi32>, %u: tensor<8xf32>) -> tensor<6x8x4xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<8x1xi32>
  %1 = stablehlo.concatenate %i, %0, %i, dim = 1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<8x1xi32>, tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x3xi32>
  %2 = "stablehlo.scatter"(%x, %1, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1, 2], scatter_dims_to_operand_dims = [0, 1, 2], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<6x8x4xf32>, tensor<8x3xi32>, tensor<8xf32>) -> tensor<6x8x4xf32>
  return %2 : tensor<6x8x4xf32>
}

// -----

// A window at a known place is the update of a slice; one that is out of bounds is left out by a scatter, and stays.
// CHECK: sdy.mesh @mesh = <["a"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %arg1: tensor<3xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
// CHECK-NEXT: %c = stablehlo.constant dense<1> : tensor<2xi32>
// CHECK-NEXT: %0 = stablehlo.reshape %arg1 : (tensor<3xf32>) -> tensor<3x1xf32>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT: %c_1 = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT: %1 = stablehlo.dynamic_update_slice %arg0, %0, %c_0, %c_1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<8x4xf32>, tensor<3x1xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
// CHECK-NEXT: %c_2 = stablehlo.constant dense<6> : tensor<1xi32>
// CHECK-NEXT: %2 = "stablehlo.scatter"(%arg0, %c_2, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [0]>}> ({
// CHECK-NEXT: ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CHECK-NEXT: stablehlo.return %arg3 : tensor<f32>
// CHECK-NEXT: }) : (tensor<8x4xf32>, tensor<1xi32>, tensor<3xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: return %1, %2 : tensor<8x4xf32>, tensor<8x4xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %u: tensor<3xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = stablehlo.constant dense<1> : tensor<2xi32>
  %1 = "stablehlo.scatter"(%x, %0, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [0, 1]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<8x4xf32>, tensor<2xi32>, tensor<3xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.constant dense<6> : tensor<1xi32>
  %3 = "stablehlo.scatter"(%x, %2, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<1xi32>, tensor<3xf32>) -> tensor<8x4xf32>
  return %1, %3 : tensor<8x4xf32>, tensor<8x4xf32>
}
