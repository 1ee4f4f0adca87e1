// RUN: sdy_opt %s -split-input-file -sdy-convert-global-to-local='enable-rgv3=false' | FileCheck %s

// NEWER: tables, groups and special treatment are others
// Several dimensions are gathered at once, along a new leading one.
sdy.mesh @m = <["x"=2, "y"=2, "z"=2]>
// CHECK-LABEL: func.func @gather_at_once(%arg0: tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@m, [{"z", "x"}, {"y"}]>}) -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"z"}, {}]>})
// CHECK-NEXT: %0 = stablehlo.reshape %arg0 : (tensor<2x2xf32>) -> tensor<1x2x2xf32>
// CHECK-NEXT: %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 2, 4, 6], [1, 3, 5, 7{{\]\]}}> : tensor<2x4xi64>, use_global_device_ids}> : (tensor<1x2x2xf32>) -> tensor<4x2x2xf32>
// CHECK-NEXT: %2 = stablehlo.reshape %1 : (tensor<4x2x2xf32>) -> tensor<2x2x2x2xf32>
// CHECK-NEXT: %3 = stablehlo.transpose %2, dims = [0, 2, 1, 3] : (tensor<2x2x2x2xf32>) -> tensor<2x2x2x2xf32>
// CHECK-NEXT: %4 = stablehlo.reshape %3 : (tensor<2x2x2x2xf32>) -> tensor<4x4xf32>
// CHECK-NEXT: return %4 : tensor<4x4xf32>
func.func @gather_at_once(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"z", "x"}, {"y"}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"z"}, {}]>}) {
  %0 = sdy.all_gather [{"x"}, {"y"}] %arg0 out_sharding=<@m, [{"z"}, {}]> : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// One dimension is gathered as it is.
sdy.mesh @m = <["x"=2, "y"=2], device_ids=[3, 1, 2, 0]>
// CHECK-LABEL: func.func @gather(%arg0: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}) -> (tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"y"}]>})
// CHECK-NEXT: %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}3, 2], [1, 0{{\]\]}}> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4x2xf32>) -> tensor<8x2xf32>
// CHECK-NEXT: return %0 : tensor<8x2xf32>
func.func @gather(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"y"}]>}) {
  %0 = sdy.all_gather [{"x"}, {}] %arg0 out_sharding=<@m, [{}, {"y"}]> : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// The offset is relative to what the device holds: only the slicing axes count.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @slice(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) -> (tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x", "y"}, {}]>})
// CHECK-NEXT: %0 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c = stablehlo.constant dense<[0, 2, 0, 2]> : tensor<4xi32>
// CHECK-NEXT: %1 = stablehlo.dynamic_slice %c, %0, sizes = [1] : (tensor<4xi32>, tensor<ui32>) -> tensor<1xi32>
// CHECK-NEXT: %2 = stablehlo.reshape %1 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %3 = stablehlo.dynamic_slice %arg0, %2, %c_0, sizes = [2, 4] : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
// CHECK-NEXT: return %3 : tensor<2x4xf32>
func.func @slice(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x", "y"}, {}]>}) {
  %0 = sdy.all_slice [{"y"}, {}] %arg0 out_sharding=<@m, [{"x", "y"}, {}]> : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @exchange(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) -> (tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"x"}]>})
// CHECK-NEXT: %0 = "stablehlo.all_to_all"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 0 : i64, replica_groups = dense<{{\[\[}}0, 2], [1, 3{{\]\]}}> : tensor<2x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<4x4xf32>) -> tensor<8x2xf32>
// CHECK-NEXT: return %0 : tensor<8x2xf32>
func.func @exchange(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"x"}]>}) {
  %0 = sdy.all_to_all [{"x"}: 0->1] %arg0 out_sharding=<@m, [{}, {"x"}]> : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// Axes that move between several pairs of dimensions are exchanged at once.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @exchange_at_once(%arg0: tensor<4x2x6x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}, {}, {}]>}) -> (tensor<8x4x3x2xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}, {"y"}, {"x"}]>})
// CHECK-NEXT: %0 = stablehlo.reshape %arg0 : (tensor<4x2x6x4xf32>) -> tensor<4x2x2x3x2x2xf32>
// CHECK-NEXT: %1 = stablehlo.transpose %0, dims = [2, 4, 0, 1, 3, 5] : (tensor<4x2x2x3x2x2xf32>) -> tensor<2x2x4x2x3x2xf32>
// CHECK-NEXT: %2 = stablehlo.reshape %1 : (tensor<2x2x4x2x3x2xf32>) -> tensor<4x4x2x3x2xf32>
// CHECK-NEXT: %3 = "stablehlo.all_to_all"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 0 : i64, replica_groups = dense<{{\[\[}}0, 2, 1, 3{{\]\]}}> : tensor<1x4xi64>, split_count = 4 : i64, split_dimension = 0 : i64}> : (tensor<4x4x2x3x2xf32>) -> tensor<4x4x2x3x2xf32>
// CHECK-NEXT: %4 = stablehlo.reshape %3 : (tensor<4x4x2x3x2xf32>) -> tensor<2x2x4x2x3x2xf32>
// CHECK-NEXT: %5 = stablehlo.transpose %4, dims = [1, 2, 0, 3, 4, 5] : (tensor<2x2x4x2x3x2xf32>) -> tensor<2x4x2x2x3x2xf32>
// CHECK-NEXT: %6 = stablehlo.reshape %5 : (tensor<2x4x2x2x3x2xf32>) -> tensor<8x4x3x2xf32>
// CHECK-NEXT: return %6 : tensor<8x4x3x2xf32>
func.func @exchange_at_once(%arg0: tensor<8x4x6x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}, {}, {}]>}) -> (tensor<8x4x6x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}, {"y"}, {"x"}]>}) {
  %0 = sdy.all_to_all [{"x"}: 0->3, {"y"}: 1->2] %arg0 out_sharding=<@m, [{}, {}, {"y"}, {"x"}]> : tensor<8x4x6x4xf32>
  return %0 : tensor<8x4x6x4xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["x"=2, "y"=4]>
// CHECK-LABEL: func.func @permute(%arg0: tensor<1xf32> {sdy.sharding = #sdy.sharding<@m, [{"x", "y"}]>}) -> (tensor<1xf32> {sdy.sharding = #sdy.sharding<@m, [{"y", "x"}]>})
// CHECK-NEXT: %0 = "stablehlo.collective_permute"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<{{\[\[}}0, 0], [1, 4], [2, 1], [3, 5], [4, 2], [5, 6], [6, 3], [7, 7{{\]\]}}> : tensor<8x2xi64>}> : (tensor<1xf32>) -> tensor<1xf32>
// CHECK-NEXT: return %0 : tensor<1xf32>
func.func @permute(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x", "y"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"y", "x"}]>}) {
  %0 = sdy.collective_permute %arg0 out_sharding=<@m, [{"y", "x"}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// Channels continue those that the module has.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @reduce(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{}], unreduced={"x"}>}, %arg1: tensor<4xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{}]>})
// CHECK-NEXT: %0 = "stablehlo.collective_permute"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>, source_target_pairs = dense<{{\[\[}}0, 1{{\]\]}}> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %1 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 8, type = 1>, replica_groups = dense<{{\[\[}}0, 2], [1, 3{{\]\]}}> : tensor<2x2xi64>, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CHECK-NEXT: %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
// CHECK-NEXT: stablehlo.return %2 : tensor<f32>
// CHECK-NEXT: }) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: return %1 : tensor<8xf32>
func.func @reduce(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{}], unreduced={"x"}>}, %arg1: tensor<4xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{}]>}) {
  %0 = "stablehlo.collective_permute"(%arg1) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>}> : (tensor<4xf32>) -> tensor<4xf32>
  %1 = sdy.all_reduce {"x"} %arg0 out_sharding=<@m, [{}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @reduce_scatter(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{}], unreduced={"x"}>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>})
// CHECK-NEXT: %0 = "stablehlo.reduce_scatter"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 2], [1, 3{{\]\]}}> : tensor<2x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT: %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
// CHECK-NEXT: stablehlo.return %1 : tensor<f32>
// CHECK-NEXT: }) : (tensor<8xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %0 : tensor<4xf32>
func.func @reduce_scatter(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{}], unreduced={"x"}>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  %0 = sdy.reduce_scatter [{"x"}] %arg0 out_sharding=<@m, [{"x"}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// Several dimensions are reduced, then sliced.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @reduce_scatter_several(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}], unreduced={"x", "y"}>}) -> (tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>})
// CHECK-NEXT: %0 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1, 2, 3{{\]\]}}> : tensor<1x4xi64>, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT: %8 = stablehlo.add %arg1, %arg2 : tensor<f32>
// CHECK-NEXT: stablehlo.return %8 : tensor<f32>
// CHECK-NEXT: }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: %1 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c = stablehlo.constant dense<[0, 0, 4, 4]> : tensor<4xi32>
// CHECK-NEXT: %2 = stablehlo.dynamic_slice %c, %1, sizes = [1] : (tensor<4xi32>, tensor<ui32>) -> tensor<1xi32>
// CHECK-NEXT: %3 = stablehlo.reshape %2 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %4 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<[0, 2, 0, 2]> : tensor<4xi32>
// CHECK-NEXT: %5 = stablehlo.dynamic_slice %c_0, %4, sizes = [1] : (tensor<4xi32>, tensor<ui32>) -> tensor<1xi32>
// CHECK-NEXT: %6 = stablehlo.reshape %5 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %7 = stablehlo.dynamic_slice %0, %3, %6, sizes = [4, 2] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<4x2xf32>
// CHECK-NEXT: return %7 : tensor<4x2xf32>
func.func @reduce_scatter_several(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}], unreduced={"x", "y"}>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}) {
  %0 = sdy.reduce_scatter [{"x"}, {"y"}] %arg0 out_sharding=<@m, [{"x"}, {"y"}]> : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
