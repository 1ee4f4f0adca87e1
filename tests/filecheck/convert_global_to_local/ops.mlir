// RUN: sdy_opt %s -split-input-file -sdy-convert-global-to-local='enable-rgv3=false' | FileCheck %s

// NEWER: tables, groups and special treatment are others
// The shardings of arguments and results of the main function are noted on the module.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK: module attributes {sdy.output_shardings = #sdy.sharding_per_value<[<mesh<["x"=2, "y"=2]>, [{}]>]>, sdy.parameters_shardings = #sdy.sharding_per_value<[<mesh<["x"=2, "y"=2]>, [{"x"}]>, <mesh<["x"=2, "y"=2]>, []>]>}
// CHECK-LABEL: func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT: %0 = stablehlo.abs %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : tensor<4xf32>
// CHECK-NEXT: %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 2], [1, 3{{\]\]}}> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4xf32>) -> tensor<8xf32>
// CHECK-NEXT: return %1 : tensor<8xf32>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<f32>) -> tensor<8xf32> {
  %0 = stablehlo.abs %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : tensor<8xf32>
  %1 = sdy.all_gather [{"x"}] %0 out_sharding=<@m, [{}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// The body of a manual computation takes its place.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @manual(%arg0: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}) -> (tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>})
// CHECK-NEXT: %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {"y"}]>]>} : tensor<4x2xf32>
// CHECK-NEXT: return %0 : tensor<4x2xf32>
func.func @manual(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}) {
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@m, [{"x"}, {"y"}]>] out_shardings=[<@m, [{"x"}, {"y"}]>] manual_axes={"x"} (%arg1: tensor<4x4xf32>) {
    %1 = stablehlo.negate %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {"y"}]>]>} : tensor<4x4xf32>
    sdy.return %1 : tensor<4x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// A contraction along an axis leaves the product partial; it is completed where nothing else does that.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @dot(%arg0: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}, %arg1: tensor<2x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"y"}, {}]>}) -> (tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>})
// CHECK-NEXT: %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}, {}]>]>} : (tensor<4x2xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>
// CHECK-NEXT: %1 = "stablehlo.all_reduce"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1], [2, 3{{\]\]}}> : tensor<2x2xi64>, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CHECK-NEXT: %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
// CHECK-NEXT: stablehlo.return %2 : tensor<f32>
// CHECK-NEXT: }) : (tensor<4x6xf32>) -> tensor<4x6xf32>
// CHECK-NEXT: return %1 : tensor<4x6xf32>
func.func @dot(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}, %arg1: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"y"}, {}]>}) -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) {
  %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}, {}]>]>} : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @partial_dot(%arg0: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}, %arg1: tensor<2x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"y"}, {}]>}) -> (tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>})
// CHECK-NEXT: %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}, {}], unreduced={"y"}>]>} : (tensor<4x2xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>
// CHECK-NEXT: %1 = "stablehlo.reduce_scatter"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1], [2, 3{{\]\]}}> : tensor<2x2xi64>, scatter_dimension = 1 : i64, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CHECK-NEXT: %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
// CHECK-NEXT: stablehlo.return %2 : tensor<f32>
// CHECK-NEXT: }) : (tensor<4x6xf32>) -> tensor<4x3xf32>
// CHECK-NEXT: return %1 : tensor<4x3xf32>
func.func @partial_dot(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}, %arg1: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"y"}, {}]>}) -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}) {
  %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}, {}], unreduced={"y"}>]>} : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %1 = sdy.reduce_scatter [{}, {"y"}] %0 out_sharding=<@m, [{"x"}, {"y"}]> : tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// Constants become smaller, or are cut.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @constants() -> (tensor<2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, tensor<2xi32> {sdy.sharding = #sdy.sharding<@m, [{"y"}]>})
// CHECK-NEXT: %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
// CHECK-NEXT: %c = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
// CHECK-NEXT: %0 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<[0, 2, 0, 2]> : tensor<4xi32>
// CHECK-NEXT: %1 = stablehlo.dynamic_slice %c_0, %0, sizes = [1] : (tensor<4xi32>, tensor<ui32>) -> tensor<1xi32>
// CHECK-NEXT: %2 = stablehlo.reshape %1 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %3 = stablehlo.dynamic_slice %c, %2, sizes = [2] : (tensor<4xi32>, tensor<i32>) -> tensor<2xi32>
// CHECK-NEXT: return %cst, %3 : tensor<2xf32>, tensor<2xi32>
func.func @constants() -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, tensor<4xi32> {sdy.sharding = #sdy.sharding<@m, [{"y"}]>}) {
  %0 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} dense<1.0> : tensor<4xf32>
  %1 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"y"}]>]>} dense<[1, 2, 3, 4]> : tensor<4xi32>
  return %0, %1 : tensor<4xf32>, tensor<4xi32>
}

// -----

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @iota() -> (tensor<2x3xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>})
// CHECK-NEXT: %0 = stablehlo.iota dim = 1 : tensor<2x3xf32>
// CHECK-NEXT: %1 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c = stablehlo.constant dense<[0, 3, 0, 3]> : tensor<4xi32>
// CHECK-NEXT: %2 = stablehlo.dynamic_slice %c, %1, sizes = [1] : (tensor<4xi32>, tensor<ui32>) -> tensor<1xi32>
// CHECK-NEXT: %3 = stablehlo.reshape %2 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %4 = stablehlo.convert %3 : (tensor<i32>) -> tensor<f32>
// CHECK-NEXT: %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
// CHECK-NEXT: %6 = stablehlo.add %0, %5 : tensor<2x3xf32>
// CHECK-NEXT: return %6 : tensor<2x3xf32>
func.func @iota() -> (tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}) {
  %0 = stablehlo.iota dim = 1 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}, {"y"}]>]>} : tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// Every device takes the rows that it has; the sum has all.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @gather(%arg0: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}, %arg1: tensor<3xi32>) -> (tensor<3x2xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"y"}]>})
// CHECK-NEXT: %c = stablehlo.constant dense<0> : tensor<3xi32>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<7> : tensor<3xi32>
// CHECK-NEXT: %0 = stablehlo.clamp %c, %arg1, %c_0 : tensor<3xi32>
// CHECK-NEXT: %1 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c_1 = stablehlo.constant dense<[0, 0, 4, 4]> : tensor<4xi32>
// CHECK-NEXT: %2 = stablehlo.dynamic_slice %c_1, %1, sizes = [1] : (tensor<4xi32>, tensor<ui32>) -> tensor<1xi32>
// CHECK-NEXT: %3 = stablehlo.reshape %2 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %4 = stablehlo.convert %3 : tensor<i32>
// CHECK-NEXT: %c_2 = stablehlo.constant dense<3> : tensor<i32>
// CHECK-NEXT: %5 = stablehlo.add %4, %c_2 : tensor<i32>
// CHECK-NEXT: %6 = stablehlo.broadcast_in_dim %4, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}]>]>} : (tensor<i32>) -> tensor<3xi32>
// CHECK-NEXT: %7 = stablehlo.broadcast_in_dim %5, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}]>]>} : (tensor<i32>) -> tensor<3xi32>
// CHECK-NEXT: %8 = stablehlo.subtract %0, %6 : tensor<3xi32>
// CHECK-NEXT: %9 = stablehlo.compare GE, %0, %6 : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
// CHECK-NEXT: %10 = stablehlo.compare LE, %0, %7 : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
// CHECK-NEXT: %11 = stablehlo.and %9, %10 : tensor<3xi1>
// CHECK-NEXT: %12 = "stablehlo.gather"(%arg0, %8) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 2>}> {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {"y"}]>]>} : (tensor<4x2xf32>, tensor<3xi32>) -> tensor<3x2xf32>
// CHECK-NEXT: %13 = stablehlo.broadcast_in_dim %11, dims = [0] : (tensor<3xi1>) -> tensor<3x2xi1>
// CHECK-NEXT: %cst = stablehlo.constant dense<0.000000e+00> : tensor<3x2xf32>
// CHECK-NEXT: %14 = stablehlo.select %13, %12, %cst : tensor<3x2xi1>, tensor<3x2xf32>
// CHECK-NEXT: %15 = "stablehlo.all_reduce"(%14) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 2], [1, 3{{\]\]}}> : tensor<2x2xi64>, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CHECK-NEXT: %16 = stablehlo.add %arg2, %arg3 : tensor<f32>
// CHECK-NEXT: stablehlo.return %16 : tensor<f32>
// CHECK-NEXT: }) : (tensor<3x2xf32>) -> tensor<3x2xf32>
// CHECK-NEXT: return %15 : tensor<3x2xf32>
func.func @gather(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}, %arg1: tensor<3xi32>) -> (tensor<3x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"y"}]>}) {
  %0 = "stablehlo.gather"(%arg0, %arg1) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>, sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {"y"}]>]>} : (tensor<8x4xf32>, tensor<3xi32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// The first device starts from the input, the others from zero.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @scatter(%arg0: tensor<4x4xi32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}, %arg1: tensor<2xi32> {sdy.sharding = #sdy.sharding<@m, [{"y"}]>}, %arg2: tensor<2x4xi32> {sdy.sharding = #sdy.sharding<@m, [{"y"}, {}]>}) -> (tensor<4x4xi32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>})
// CHECK-NEXT: %c = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4x4xi32>
// CHECK-NEXT: %1 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<[true, false, true, false]> : tensor<4xi1>
// CHECK-NEXT: %2 = stablehlo.dynamic_slice %c_0, %1, sizes = [1] : (tensor<4xi1>, tensor<ui32>) -> tensor<1xi1>
// CHECK-NEXT: %3 = stablehlo.reshape %2 : (tensor<1xi1>) -> tensor<i1>
// CHECK-NEXT: %4 = stablehlo.select %3, %arg0, %0 : tensor<i1>, tensor<4x4xi32>
// CHECK-NEXT: %5 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c_1 = stablehlo.constant dense<[0, 0, 4, 4]> : tensor<4xi32>
// CHECK-NEXT: %6 = stablehlo.dynamic_slice %c_1, %5, sizes = [1] : (tensor<4xi32>, tensor<ui32>) -> tensor<1xi32>
// CHECK-NEXT: %7 = stablehlo.reshape %6 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %8 = stablehlo.convert %7 : tensor<i32>
// CHECK-NEXT: %9 = stablehlo.broadcast_in_dim %8, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}]>]>} : (tensor<i32>) -> tensor<2xi32>
// CHECK-NEXT: %10 = stablehlo.subtract %arg1, %9 : tensor<2xi32>
// CHECK-NEXT: %11 = "stablehlo.scatter"(%4, %10, %arg2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
// CHECK-NEXT: ^bb0(%arg3: tensor<i32>, %arg4: tensor<i32>):
// CHECK-NEXT: %13 = stablehlo.add %arg3, %arg4 : tensor<i32>
// CHECK-NEXT: stablehlo.return %13 : tensor<i32>
// CHECK-NEXT: }) {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}, {}]>]>} : (tensor<4x4xi32>, tensor<2xi32>, tensor<2x4xi32>) -> tensor<4x4xi32>
// CHECK-NEXT: %12 = "stablehlo.all_reduce"(%11) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1], [2, 3{{\]\]}}> : tensor<2x2xi64>, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%arg3: tensor<i32>, %arg4: tensor<i32>):
// CHECK-NEXT: %13 = stablehlo.add %arg3, %arg4 : tensor<i32>
// CHECK-NEXT: stablehlo.return %13 : tensor<i32>
// CHECK-NEXT: }) : (tensor<4x4xi32>) -> tensor<4x4xi32>
// CHECK-NEXT: return %12 : tensor<4x4xi32>
func.func @scatter(%arg0: tensor<8x4xi32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}, %arg1: tensor<4xi32> {sdy.sharding = #sdy.sharding<@m, [{"y"}]>}, %arg2: tensor<4x4xi32> {sdy.sharding = #sdy.sharding<@m, [{"y"}, {}]>}) -> (tensor<8x4xi32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) {
  %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) ({
  ^bb0(%arg3: tensor<i32>, %arg4: tensor<i32>):
    %1 = stablehlo.add %arg3, %arg4 : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}, {}]>]>} : (tensor<8x4xi32>, tensor<4xi32>, tensor<4x4xi32>) -> tensor<8x4xi32>
  return %0 : tensor<8x4xi32>
}

// -----

// NEWER: tables, groups and special treatment are others
// Only the device that holds the row changes it.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @update(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}, %arg1: tensor<1x4xf32>, %arg2: tensor<i32>) -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>})
// CHECK-NEXT: %c = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<7> : tensor<i32>
// CHECK-NEXT: %0 = stablehlo.clamp %c, %arg2, %c_0 : tensor<i32>
// CHECK-NEXT: %1 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c_1 = stablehlo.constant dense<[0, 0, 4, 4]> : tensor<4xi32>
// CHECK-NEXT: %2 = stablehlo.dynamic_slice %c_1, %1, sizes = [1] : (tensor<4xi32>, tensor<ui32>) -> tensor<1xi32>
// CHECK-NEXT: %3 = stablehlo.reshape %2 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %4 = stablehlo.convert %3 : tensor<i32>
// CHECK-NEXT: %c_2 = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT: %5 = stablehlo.add %0, %c_2 : tensor<i32>
// CHECK-NEXT: %c_3 = stablehlo.constant dense<4> : tensor<i32>
// CHECK-NEXT: %6 = stablehlo.add %4, %c_3 : tensor<i32>
// CHECK-NEXT: %7 = stablehlo.compare GE, %0, %4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT: %8 = stablehlo.compare LE, %5, %6 : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT: %9 = stablehlo.and %7, %8 : tensor<i1>
// CHECK-NEXT: %10 = stablehlo.subtract %0, %4 : tensor<i32>
// CHECK-NEXT: %11 = stablehlo.select %9, %10, %c : tensor<i1>, tensor<i32>
// CHECK-NEXT: %12 = stablehlo.dynamic_update_slice %arg0, %arg1, %11, %arg2 : (tensor<4x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<4x4xf32>
// CHECK-NEXT: %13 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<4x4xi1>
// CHECK-NEXT: %14 = stablehlo.select %13, %12, %arg0 : tensor<4x4xi1>, tensor<4x4xf32>
// CHECK-NEXT: return %14 : tensor<4x4xf32>
func.func @update(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}, %arg1: tensor<1x4xf32>, %arg2: tensor<i32>) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) {
  %0 = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2, %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}, {}]>]>} : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// A reduction of several operands is done once more over what all devices have.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @reduce(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}, %arg1: tensor<4x4xi32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{}]>}, tensor<4xi32> {sdy.sharding = #sdy.sharding<@m, [{}]>})
// CHECK-NEXT: %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
// CHECK-NEXT: %c = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %0:2 = stablehlo.reduce(%arg0 init: %cst), (%arg1 init: %c) across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}]>, <@m, [{}]>]>} : (tensor<4x4xf32>, tensor<4x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
// CHECK-NEXT: reducer(%arg2: tensor<f32>, %arg4: tensor<f32>) (%arg3: tensor<i32>, %arg5: tensor<i32>)  {
// CHECK-NEXT: %6 = stablehlo.compare GE, %arg2, %arg4 : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT: %7 = stablehlo.select %6, %arg2, %arg4 : tensor<i1>, tensor<f32>
// CHECK-NEXT: %8 = stablehlo.select %6, %arg3, %arg5 : tensor<i1>, tensor<i32>
// CHECK-NEXT: stablehlo.return %7, %8 : tensor<f32>, tensor<i32>
// CHECK-NEXT: }
// CHECK-NEXT: %1 = stablehlo.reshape %0#0 : (tensor<4xf32>) -> tensor<4x1xf32>
// CHECK-NEXT: %2 = "stablehlo.all_gather"(%1) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 2], [1, 3{{\]\]}}> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4x1xf32>) -> tensor<4x2xf32>
// CHECK-NEXT: %3 = stablehlo.reshape %0#1 : (tensor<4xi32>) -> tensor<4x1xi32>
// CHECK-NEXT: %4 = "stablehlo.all_gather"(%3) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<{{\[\[}}0, 2], [1, 3{{\]\]}}> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4x1xi32>) -> tensor<4x2xi32>
// CHECK-NEXT: %5:2 = stablehlo.reduce(%2 init: %cst), (%4 init: %c) across dimensions = [1] : (tensor<4x2xf32>, tensor<4x2xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
// CHECK-NEXT: reducer(%arg2: tensor<f32>, %arg4: tensor<f32>) (%arg3: tensor<i32>, %arg5: tensor<i32>)  {
// CHECK-NEXT: %6 = stablehlo.compare GE, %arg2, %arg4 : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT: %7 = stablehlo.select %6, %arg2, %arg4 : tensor<i1>, tensor<f32>
// CHECK-NEXT: %8 = stablehlo.select %6, %arg3, %arg5 : tensor<i1>, tensor<i32>
// CHECK-NEXT: stablehlo.return %7, %8 : tensor<f32>, tensor<i32>
// CHECK-NEXT: }
// CHECK-NEXT: return %5#0, %5#1 : tensor<4xf32>, tensor<4xi32>
func.func @reduce(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}, %arg1: tensor<8x4xi32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{}]>}, tensor<4xi32> {sdy.sharding = #sdy.sharding<@m, [{}]>}) {
  %0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %1 = stablehlo.constant dense<0> : tensor<i32>
  %2:2 = stablehlo.reduce(%arg0 init: %0), (%arg1 init: %1) across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}]>, <@m, [{}]>]>} : (tensor<8x4xf32>, tensor<8x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
    reducer(%arg2: tensor<f32>, %arg3: tensor<f32>) (%arg4: tensor<i32>, %arg5: tensor<i32>) {
    %3 = stablehlo.compare GE, %arg2, %arg3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %4 = stablehlo.select %3, %arg2, %arg3 : tensor<i1>, tensor<f32>
    %5 = stablehlo.select %3, %arg4, %arg5 : tensor<i1>, tensor<i32>
    stablehlo.return %4, %5 : tensor<f32>, tensor<i32>
  }
  return %2#0, %2#1 : tensor<4xf32>, tensor<4xi32>
}

// -----

// NEWER: tables, groups and special treatment are others
// A window that stays in a shard, a slice of a whole dimension, groups of features.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @windows(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}, %arg1: tensor<8x6x2xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}, {"x"}]>}, %arg2: tensor<3x1x2xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}, {"x"}]>}) -> (tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>})
// CHECK-NEXT: %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %0 = "stablehlo.reduce_window"(%arg0, %cst) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 1>}> ({
// CHECK-NEXT: ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
// CHECK-NEXT: %3 = stablehlo.add %arg3, %arg4 : tensor<f32>
// CHECK-NEXT: stablehlo.return %3 : tensor<f32>
// CHECK-NEXT: }) {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}, {}]>]>} : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x3xf32>
// CHECK-NEXT: %1 = stablehlo.slice %0 [0:4, 0:2] : (tensor<4x3xf32>) -> tensor<4x2xf32>
// CHECK-NEXT: %2 = stablehlo.convolution(%arg1, %arg2) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = {{\[\[}}0, 0{{\]\]}}} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<8x6x2xf32>, tensor<3x1x2xf32>) -> tensor<8x4x2xf32>
// CHECK-NEXT: return %1 : tensor<4x2xf32>
func.func @windows(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}, %arg1: tensor<8x6x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}, {"x"}]>}, %arg2: tensor<3x1x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}, {"x"}]>}) -> (tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = "stablehlo.reduce_window"(%arg0, %0) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 1>}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %4 = stablehlo.add %arg3, %arg4 : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}, {}]>]>} : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x3xf32>
  %2 = stablehlo.slice %1 [0:8, 0:2] {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}, {}]>]>} : (tensor<8x3xf32>) -> tensor<8x2xf32>
  %3 = stablehlo.convolution(%arg1, %arg2) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64, sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {}, {"x"}]>]>} : (tensor<8x6x4xf32>, tensor<3x1x4xf32>) -> tensor<8x4x4xf32>
  return %2 : tensor<8x2xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// Every shard has random bits of its own.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @random(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32> {sdy.sharding = #sdy.sharding<@m, [{"y"}]>})
// CHECK-NEXT: %0 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c = stablehlo.constant dense<[0, 3801824426178300716, 0, 3801824426178300716]> : tensor<4xui64>
// CHECK-NEXT: %1 = stablehlo.dynamic_slice %c, %0, sizes = [1] : (tensor<4xui64>, tensor<ui32>) -> tensor<1xui64>
// CHECK-NEXT: %2 = stablehlo.reshape %1 : (tensor<1xui64>) -> tensor<ui64>
// CHECK-NEXT: %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<ui64>) -> tensor<2xui64>
// CHECK-NEXT: %4 = stablehlo.add %arg0, %3 : tensor<2xui64>
// CHECK-NEXT: %output_state, %output = stablehlo.rng_bit_generator %4, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
// CHECK-NEXT: %c_0 = stablehlo.constant dense<[true, false, true, false]> : tensor<4xi1>
// CHECK-NEXT: %5 = stablehlo.dynamic_slice %c_0, %0, sizes = [1] : (tensor<4xi1>, tensor<ui32>) -> tensor<1xi1>
// CHECK-NEXT: %6 = stablehlo.reshape %5 : (tensor<1xi1>) -> tensor<i1>
// CHECK-NEXT: %c_1 = stablehlo.constant dense<0> : tensor<2xui64>
// CHECK-NEXT: %7 = stablehlo.select %6, %output_state, %c_1 : tensor<i1>, tensor<2xui64>
// CHECK-NEXT: %8 = "stablehlo.all_reduce"(%7) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1], [2, 3{{\]\]}}> : tensor<2x2xi64>, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%arg1: tensor<ui64>, %arg2: tensor<ui64>):
// CHECK-NEXT: %9 = stablehlo.add %arg1, %arg2 : tensor<ui64>
// CHECK-NEXT: stablehlo.return %9 : tensor<ui64>
// CHECK-NEXT: }) : (tensor<2xui64>) -> tensor<2xui64>
// CHECK-NEXT: return %8, %output : tensor<2xui64>, tensor<4xui32>
func.func @random(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32> {sdy.sharding = #sdy.sharding<@m, [{"y"}]>}) {
  %0, %1 = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}]>, <@m, [{"y"}]>]>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)
  return %0, %1 : tensor<2xui64>, tensor<8xui32>
}

// -----

// NEWER: tables, groups and special treatment are others
// Numbers for a state of 32 bits, though a state of 64 bits is returned.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @random_of_two_widths
// CHECK: stablehlo.constant dense<[0, 885181228, 0, 885181228]> : tensor<4xui32>
// CHECK: %output_state, %output = stablehlo.rng_bit_generator %4, algorithm = THREE_FRY : (tensor<2xui32>) -> (tensor<2xui64>, tensor<4xui32>)
// CHECK: stablehlo.constant dense<0> : tensor<2xui64>
func.func @random_of_two_widths(%arg0: tensor<2xui32>) -> (tensor<2xui64>, tensor<8xui32> {sdy.sharding = #sdy.sharding<@m, [{"y"}]>}) {
  %0, %1 = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}]>, <@m, [{"y"}]>]>} : (tensor<2xui32>) -> (tensor<2xui64>, tensor<8xui32>)
  return %0, %1 : tensor<2xui64>, tensor<8xui32>
}

// -----

// NEWER: tables, groups and special treatment are others
// Padding that is different on every device.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @pad(%arg0: tensor<2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<f32>) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>})
// CHECK-NEXT: %0 = stablehlo.pad %arg0, %arg1, low = [2], high = [2], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT: %1 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c = stablehlo.constant dense<[0, 0, 2, 2]> : tensor<4xi32>
// CHECK-NEXT: %2 = stablehlo.dynamic_slice %c, %1, sizes = [1] : (tensor<4xi32>, tensor<ui32>) -> tensor<1xi32>
// CHECK-NEXT: %3 = stablehlo.reshape %2 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %4 = stablehlo.dynamic_slice %0, %3, sizes = [4] : (tensor<6xf32>, tensor<i32>) -> tensor<4xf32>
// CHECK-NEXT: return %4 : tensor<4xf32>
func.func @pad(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<f32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  %0 = stablehlo.pad %arg0, %arg1, low = [2], high = [2], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
