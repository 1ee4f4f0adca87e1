// REQUIRES: jaxlib-0.12
// RUN: sdy_opt %s -split-input-file -sdy-convert-global-to-local | FileCheck %s

// NEWER: tables, groups and special treatment are others
// Groups are written as axes of the mesh, sub-axes too.
sdy.mesh @m = <["x"=4, "y"=2]>
// CHECK-LABEL: func.func @gather(%arg0: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x":(1)2}, {"y"}]>}) -> (tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"y"}]>})
// CHECK-NEXT: %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = "x", sub_axis_info = (1)2>]>, use_global_device_ids}> : (tensor<4x2xf32>) -> tensor<8x2xf32>
// CHECK-NEXT: return %0 : tensor<8x2xf32>
func.func @gather(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x":(1)2}, {"y"}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"y"}]>}) {
  %0 = sdy.all_gather [{"x":(1)2}, {}] %arg0 out_sharding=<@m, [{}, {"y"}]> : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// A mesh that is written in place is written in place.
// DIFFERS: the reference writes what cannot be read again
// CHECK-LABEL: func.func @inlined(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2]>, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2]>, [{}]>})
// CHECK-NEXT: %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes=[<name = "x", size = 2>]>, axes = [#stablehlo.axis_ref<name = "x">]>, use_global_device_ids}> : (tensor<4xf32>) -> tensor<8xf32>
// CHECK-NEXT: return %0 : tensor<8xf32>
func.func @inlined(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2]>, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2]>, [{}]>}) {
  %0 = sdy.all_gather [{"x"}] %arg0 out_sharding=<mesh<["x"=2]>, [{}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// Other kinds of reductions.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @kinds(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}], unreduced=max{"x"}>}, %arg1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}], unreduced=min{"x"}>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}]>}, tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"x"}]>})
// CHECK-NEXT: %0 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = "x">]>, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CHECK-NEXT: %2 = stablehlo.maximum %arg2, %arg3 : tensor<f32>
// CHECK-NEXT: stablehlo.return %2 : tensor<f32>
// CHECK-NEXT: }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: %1 = "stablehlo.reduce_scatter"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = "x">]>, scatter_dimension = 1 : i64, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CHECK-NEXT: %2 = stablehlo.minimum %arg2, %arg3 : tensor<f32>
// CHECK-NEXT: stablehlo.return %2 : tensor<f32>
// CHECK-NEXT: }) : (tensor<8x4xf32>) -> tensor<8x2xf32>
// CHECK-NEXT: return %0, %1 : tensor<8x4xf32>, tensor<8x2xf32>
func.func @kinds(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}], unreduced=max{"x"}>}, %arg1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}], unreduced=min{"x"}>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}]>}, tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"x"}]>}) {
  %0 = sdy.all_reduce max {"x"} %arg0 out_sharding=<@m, [{}, {}]> : tensor<8x4xf32>
  %1 = sdy.reduce_scatter min [{}, {"x"}] %arg1 out_sharding=<@m, [{}, {"x"}]> : tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// What a device does not hold counts as nothing.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @unreduced(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{}], unreduced={"x"}>}, tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}], unreduced={"y"}>})
// CHECK-NEXT: %cst = stablehlo.constant dense<0.000000e+00> : tensor<8xf32>
// CHECK-NEXT: %0 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c = stablehlo.constant dense<[0, 0, 4, 4]> : tensor<4xi32>
// CHECK-NEXT: %1 = stablehlo.dynamic_slice %c, %0, sizes = [1] : (tensor<4xi32>, tensor<ui32>) -> tensor<1xi32>
// CHECK-NEXT: %2 = stablehlo.reshape %1 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %3 = stablehlo.dynamic_update_slice %cst, %arg0, %2 : (tensor<8xf32>, tensor<4xf32>, tensor<i32>) -> tensor<8xf32>
// CHECK-NEXT: %4 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<[true, false, true, false]> : tensor<4xi1>
// CHECK-NEXT: %5 = stablehlo.dynamic_slice %c_0, %4, sizes = [1] : (tensor<4xi1>, tensor<ui32>) -> tensor<1xi1>
// CHECK-NEXT: %6 = stablehlo.reshape %5 : (tensor<1xi1>) -> tensor<i1>
// CHECK-NEXT: %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK-NEXT: %7 = stablehlo.select %6, %arg0, %cst_1 : tensor<i1>, tensor<4xf32>
// CHECK-NEXT: return %3, %7 : tensor<8xf32>, tensor<4xf32>
func.func @unreduced(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{}], unreduced={"x"}>}, tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}], unreduced={"y"}>}) {
  %0 = sdy.sharded_to_unreduced [{"x"}] %arg0 out_sharding=<@m, [{}], unreduced={"x"}> : tensor<8xf32>
  %1 = sdy.replicated_to_unreduced {"y"} %arg0 out_sharding=<@m, [{"x"}], unreduced={"y"}> : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
