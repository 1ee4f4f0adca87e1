// RUN: sdy_opt %s -split-input-file -sdy-per-instruction-partitioning | FileCheck %s

// NEWER: there was no such pass
// Every op becomes a manual computation over all axes; what is replicated stays.
// CHECK: sdy.mesh @mesh = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %arg1: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> tensor<8x8xf32> {
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"x"}, {"y"}]>, <@mesh, [{"y"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}], unreduced={"y"}>] manual_axes={"x", "y"} (%arg2: tensor<4x2xf32>, %arg3: tensor<2x8xf32>) {
// CHECK-NEXT: %4 = stablehlo.dot %arg2, %arg3 : (tensor<4x2xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: sdy.return %4 : tensor<4x8xf32>
// CHECK-NEXT: } : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT: %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {}], unreduced={"y"}>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x", "y"} (%arg2: tensor<4x8xf32>) {
// CHECK-NEXT: %4 = "stablehlo.all_reduce"(%arg2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "y">]>, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
// CHECK-NEXT: %5 = stablehlo.add %arg3, %arg4 : tensor<f32>
// CHECK-NEXT: stablehlo.return %5 : tensor<f32>
// CHECK-NEXT: }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: sdy.return %4 : tensor<4x8xf32>
// CHECK-NEXT: } : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT: %2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"x", "y"} (%arg2: tensor<4x8xf32>) {
// CHECK-NEXT: %4 = "stablehlo.all_gather"(%arg2) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>, use_global_device_ids}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT: sdy.return %4 : tensor<8x8xf32>
// CHECK-NEXT: } : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT: %3 = stablehlo.tanh %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : tensor<8x8xf32>
// CHECK-NEXT: return %3 : tensor<8x8xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %arg1: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}], unreduced={"y"}>]>} : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.all_reduce {"y"} %0 out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %2 = sdy.reshard %1 <@mesh, [{}, {}]> : tensor<8x8xf32>
  %3 = stablehlo.tanh %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

// -----

// NEWER: there was no such pass
// What is not divisible is padded outside and cut inside; the next op takes what was not cut.
// CHECK: sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @padded(%arg0: tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<7xf32> {
// CHECK-NEXT: %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %0 = stablehlo.pad %arg0, %cst, low = [0], high = [1], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<7xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT: %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<4xf32>) {
// CHECK-NEXT: %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %5 = stablehlo.slice %arg1 [0:4] : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %6 = stablehlo.tanh %5 : tensor<4xf32>
// CHECK-NEXT: %7 = stablehlo.iota dim = 0 : tensor<4xi32>
// CHECK-NEXT: %8 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c = stablehlo.constant dense<[0, 4]> : tensor<2xi32>
// CHECK-NEXT: %9 = stablehlo.dynamic_slice %c, %8, sizes = [1] : (tensor<2xi32>, tensor<ui32>) -> tensor<1xi32>
// CHECK-NEXT: %10 = stablehlo.reshape %9 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %11 = stablehlo.convert %10 : tensor<i32>
// CHECK-NEXT: %12 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: %13 = stablehlo.add %7, %12 : tensor<4xi32>
// CHECK-NEXT: %c_1 = stablehlo.constant dense<7> : tensor<i32>
// CHECK-NEXT: %14 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: %15 = stablehlo.compare LT, %13, %14 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
// CHECK-NEXT: %16 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %17 = stablehlo.select %15, %6, %16 : tensor<4xi1>, tensor<4xf32>
// CHECK-NEXT: %18 = stablehlo.pad %17, %cst_0, low = [0], high = [0], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: sdy.return %18 : tensor<4xf32>
// CHECK-NEXT: } : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %2 = stablehlo.slice %1 [0:7] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<7xf32>
// CHECK-NEXT: %3 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<4xf32>) {
// CHECK-NEXT: %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %5 = stablehlo.slice %arg1 [0:4] : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %6 = stablehlo.sine %5 : tensor<4xf32>
// CHECK-NEXT: %7 = stablehlo.iota dim = 0 : tensor<4xi32>
// CHECK-NEXT: %8 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c = stablehlo.constant dense<[0, 4]> : tensor<2xi32>
// CHECK-NEXT: %9 = stablehlo.dynamic_slice %c, %8, sizes = [1] : (tensor<2xi32>, tensor<ui32>) -> tensor<1xi32>
// CHECK-NEXT: %10 = stablehlo.reshape %9 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %11 = stablehlo.convert %10 : tensor<i32>
// CHECK-NEXT: %12 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: %13 = stablehlo.add %7, %12 : tensor<4xi32>
// CHECK-NEXT: %c_1 = stablehlo.constant dense<7> : tensor<i32>
// CHECK-NEXT: %14 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: %15 = stablehlo.compare LT, %13, %14 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
// CHECK-NEXT: %16 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %17 = stablehlo.select %15, %6, %16 : tensor<4xi1>, tensor<4xf32>
// CHECK-NEXT: %18 = stablehlo.pad %17, %cst_0, low = [0], high = [0], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: sdy.return %18 : tensor<4xf32>
// CHECK-NEXT: } : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %4 = stablehlo.slice %3 [0:7] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<7xf32>
// CHECK-NEXT: return %4 : tensor<7xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2]>
func.func @padded(%arg0: tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<7xf32> {
  %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<7xf32>
  %1 = stablehlo.sine %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<7xf32>
  return %1 : tensor<7xf32>
}

// -----

// NEWER: there was no such pass
// A reshard works on sizes that both sides divide, and a constant has its padding itself.
// CHECK: sdy.mesh @mesh = <["x"=2, "y"=3]>
// CHECK-LABEL: func.func @reshard() -> tensor<7xf32> {
// CHECK-NEXT: %0 = sdy.manual_computation() in_shardings=[] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x", "y"} () {
// CHECK-NEXT: %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK-NEXT: sdy.return %cst_0 : tensor<4xf32>
// CHECK-NEXT: } : () -> tensor<8xf32>
// CHECK-NEXT: %1 = stablehlo.slice %0 [0:7] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<7xf32>
// CHECK-NEXT: %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %2 = stablehlo.pad %1, %cst, low = [0], high = [5], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<7xf32>, tensor<f32>) -> tensor<12xf32>
// CHECK-NEXT: %3 = sdy.manual_computation(%2) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"x", "y"} (%arg0: tensor<6xf32>) {
// CHECK-NEXT: %5 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c = stablehlo.constant dense<[0, 2, 4, 0, 2, 4]> : tensor<6xi32>
// CHECK-NEXT: %6 = stablehlo.dynamic_slice %c, %5, sizes = [1] : (tensor<6xi32>, tensor<ui32>) -> tensor<1xi32>
// CHECK-NEXT: %7 = stablehlo.reshape %6 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %8 = stablehlo.dynamic_slice %arg0, %7, sizes = [2] : (tensor<6xf32>, tensor<i32>) -> tensor<2xf32>
// CHECK-NEXT: %9 = "stablehlo.collective_permute"(%8) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<{{\[\[}}0, 0], [1, 3], [2, 1], [3, 4], [4, 2], [5, 5{{\]\]}}> : tensor<6x2xi64>}> : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT: %10 = "stablehlo.all_gather"(%9) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>, use_global_device_ids}> : (tensor<2xf32>) -> tensor<4xf32>
// CHECK-NEXT: sdy.return %10 : tensor<4xf32>
// CHECK-NEXT: } : (tensor<12xf32>) -> tensor<12xf32>
// CHECK-NEXT: %4 = stablehlo.slice %3 [0:7] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : (tensor<12xf32>) -> tensor<7xf32>
// CHECK-NEXT: return %4 : tensor<7xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2, "y"=3]>
func.func @reshard() -> tensor<7xf32> {
  %0 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<1.0> : tensor<7xf32>
  %1 = sdy.reshard %0 <@mesh, [{"y"}]> : tensor<7xf32>
  return %1 : tensor<7xf32>
}

// -----

// NEWER: there was no such pass
// The operands of a concatenation are gathered along the dimension that it joins.
// CHECK: sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @joined(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<4xf32>) -> tensor<12xf32> {
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"x"}]>, <@mesh, [{}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg2: tensor<4xf32>, %arg3: tensor<4xf32>) {
// CHECK-NEXT: %1 = "stablehlo.all_gather"(%arg2) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>, use_global_device_ids}> : (tensor<4xf32>) -> tensor<8xf32>
// CHECK-NEXT: %2 = stablehlo.concatenate %1, %arg3, dim = 0 : (tensor<8xf32>, tensor<4xf32>) -> tensor<12xf32>
// CHECK-NEXT: %3 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c = stablehlo.constant dense<[0, 6]> : tensor<2xi32>
// CHECK-NEXT: %4 = stablehlo.dynamic_slice %c, %3, sizes = [1] : (tensor<2xi32>, tensor<ui32>) -> tensor<1xi32>
// CHECK-NEXT: %5 = stablehlo.reshape %4 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %6 = stablehlo.dynamic_slice %2, %5, sizes = [6] : (tensor<12xf32>, tensor<i32>) -> tensor<6xf32>
// CHECK-NEXT: sdy.return %6 : tensor<6xf32>
// CHECK-NEXT: } : (tensor<8xf32>, tensor<4xf32>) -> tensor<12xf32>
// CHECK-NEXT: return %0 : tensor<12xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2]>
func.func @joined(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<4xf32>) -> tensor<12xf32> {
  %0 = stablehlo.concatenate %arg0, %arg1, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<4xf32>) -> tensor<12xf32>
  return %0 : tensor<12xf32>
}

// -----

// NEWER: there was no such pass
// A convolution comes with the all-reduce that completes it.
// CHECK: sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @convolution(%arg0: tensor<1x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"x"}]>}, %arg1: tensor<1x4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>}) -> tensor<1x8x2xf32> {
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{}, {}, {"x"}]>, <@mesh, [{}, {"x"}, {}]>] out_shardings=[<@mesh, [{}, {}, {}]>] manual_axes={"x"} (%arg2: tensor<1x8x2xf32>, %arg3: tensor<1x2x2xf32>) {
// CHECK-NEXT: %1 = stablehlo.convolution(%arg2, %arg3) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x2xf32>, tensor<1x2x2xf32>) -> tensor<1x8x2xf32>
// CHECK-NEXT: %2 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
// CHECK-NEXT: %3 = stablehlo.add %arg4, %arg5 : tensor<f32>
// CHECK-NEXT: stablehlo.return %3 : tensor<f32>
// CHECK-NEXT: }) : (tensor<1x8x2xf32>) -> tensor<1x8x2xf32>
// CHECK-NEXT: sdy.return %2 : tensor<1x8x2xf32>
// CHECK-NEXT: } : (tensor<1x8x4xf32>, tensor<1x4x2xf32>) -> tensor<1x8x2xf32>
// CHECK-NEXT: return %0 : tensor<1x8x2xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2]>
func.func @convolution(%arg0: tensor<1x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"x"}]>}, %arg1: tensor<1x4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>}) -> tensor<1x8x2xf32> {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}, {}], unreduced={"x"}>]>} : (tensor<1x8x4xf32>, tensor<1x4x2xf32>) -> tensor<1x8x2xf32>
  %1 = sdy.all_reduce {"x"} %0 out_sharding=<@mesh, [{}, {}, {}]> : tensor<1x8x2xf32>
  return %1 : tensor<1x8x2xf32>
}

// -----

// NEWER: there was no such pass
// What a region captures comes in as well, and every call gets copies of what it calls.
// CHECK: sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<i1>, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, []>, <@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg2: tensor<i1>, %arg3: tensor<4xf32>) {
// CHECK-NEXT: %2 = "stablehlo.if"(%arg2) ({
// CHECK-NEXT: %3 = func.call @f_0(%arg3) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: stablehlo.return %3 : tensor<4xf32>
// CHECK-NEXT: }, {
// CHECK-NEXT: stablehlo.return %arg3 : tensor<4xf32>
// CHECK-NEXT: }) : (tensor<i1>) -> tensor<4xf32>
// CHECK-NEXT: sdy.return %2 : tensor<4xf32>
// CHECK-NEXT: } : (tensor<i1>, tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg2: tensor<4xf32>) {
// CHECK-NEXT: %2 = func.call @f_1(%arg2) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: sdy.return %2 : tensor<4xf32>
// CHECK-NEXT: } : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: return %1 : tensor<8xf32>
// CHECK-NEXT: }
// CHECK-LABEL: func.func private @f(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
// CHECK-NEXT: %0 = call @g(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: return %0 : tensor<8xf32>
// CHECK-NEXT: }
// CHECK-LABEL: func.func private @g(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
// CHECK-NEXT: %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
// CHECK-NEXT: return %0 : tensor<8xf32>
// CHECK-NEXT: }
// CHECK-LABEL: func.func private @f_0(%arg0: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT: %0 = call @g_1(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %0 : tensor<4xf32>
// CHECK-NEXT: }
// CHECK-LABEL: func.func private @g_1(%arg0: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT: %0 = stablehlo.tanh %arg0 : tensor<4xf32>
// CHECK-NEXT: return %0 : tensor<4xf32>
// CHECK-NEXT: }
// CHECK-LABEL: func.func private @f_1(%arg0: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT: %0 = call @g_2(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %0 : tensor<4xf32>
// CHECK-NEXT: }
// CHECK-LABEL: func.func private @g_2(%arg0: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT: %0 = stablehlo.tanh %arg0 : tensor<4xf32>
// CHECK-NEXT: return %0 : tensor<4xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<i1>, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = "stablehlo.if"(%arg0) ({
    %2 = func.call @f(%arg1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
    stablehlo.return %2 : tensor<8xf32>
  }, {
    stablehlo.return %arg1 : tensor<8xf32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<i1>) -> tensor<8xf32>
  %1 = func.call @f(%0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @f(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = func.call @g(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @g(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// NEWER: there was no such pass
// A mesh without a name gets one.
// CHECK: sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @inlined(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2]>, [{"x"}]>}) -> tensor<8xf32> {
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<4xf32>) {
// CHECK-NEXT: %1 = stablehlo.tanh %arg1 : tensor<4xf32>
// CHECK-NEXT: sdy.return %1 : tensor<4xf32>
// CHECK-NEXT: } : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: return %0 : tensor<8xf32>
// CHECK-NEXT: }
func.func @inlined(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2]>, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<mesh<["x"=2]>, [{"x"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
