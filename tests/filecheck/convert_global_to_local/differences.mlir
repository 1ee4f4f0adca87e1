// RUN: sdy_opt %s -split-input-file -sdy-convert-global-to-local='enable-rgv3=false' | FileCheck %s

// NEWER: tables, groups and special treatment are others
// An initial value counts once.
// DIFFERS: the reference counts it once per shard
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @initial_value(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@m, []>]>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %1 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c = stablehlo.constant dense<[true, true, false, false]> : tensor<4xi1>
// CHECK-NEXT: %2 = stablehlo.dynamic_slice %c, %1, sizes = [1] : (tensor<4xi1>, tensor<ui32>) -> tensor<1xi1>
// CHECK-NEXT: %3 = stablehlo.reshape %2 : (tensor<1xi1>) -> tensor<i1>
// CHECK-NEXT: %4 = stablehlo.select %3, %arg1, %cst : tensor<i1>, tensor<f32>
// CHECK-NEXT: %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %6 = stablehlo.add %5, %0 : tensor<f32>
// CHECK-NEXT: %7 = "stablehlo.all_reduce"(%6) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 2], [1, 3{{\]\]}}> : tensor<2x2xi64>, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CHECK-NEXT: %8 = stablehlo.add %arg2, %arg3 : tensor<f32>
// CHECK-NEXT: stablehlo.return %8 : tensor<f32>
// CHECK-NEXT: }) : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT: return %7 : tensor<f32>
func.func @initial_value(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@m, []>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// NEWER: tables, groups and special treatment are others
// A product is completed by multiplying, whatever it says.
// DIFFERS: the reference adds up products
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @product(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<f32>
// CHECK-NEXT: %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
// CHECK-NEXT: %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.multiply across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@m, [], unreduced={"x"}>]>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %1 = "stablehlo.all_reduce"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 2], [1, 3{{\]\]}}> : tensor<2x2xi64>, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT: %2 = stablehlo.multiply %arg1, %arg2 : tensor<f32>
// CHECK-NEXT: stablehlo.return %2 : tensor<f32>
// CHECK-NEXT: }) : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT: return %1 : tensor<f32>
func.func @product(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<f32> {
  %0 = stablehlo.constant dense<1.0> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.multiply across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@m, [], unreduced={"x"}>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %2 = sdy.all_reduce {"x"} %1 out_sharding=<@m, []> : tensor<f32>
  return %2 : tensor<f32>
}

// -----

// NEWER: tables, groups and special treatment are others
// The size of the whole dimension.
// DIFFERS: the reference gives the size of a shard
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @size(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<?xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> (tensor<i32>, tensor<i32>)
// CHECK-NEXT: %c = stablehlo.constant dense<8> : tensor<i32>
// CHECK-NEXT: %0 = stablehlo.get_dimension_size %arg1, dim = 0 : (tensor<?xf32>) -> tensor<i32>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %1 = stablehlo.multiply %0, %c_0 : tensor<i32>
// CHECK-NEXT: return %c, %1 : tensor<i32>, tensor<i32>
func.func @size(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<?xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> (tensor<i32>, tensor<i32>) {
  %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<8xf32>) -> tensor<i32>
  %1 = stablehlo.get_dimension_size %arg1, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  return %0, %1 : tensor<i32>, tensor<i32>
}

// -----

// NEWER: tables, groups and special treatment are others
// Constants of StableHLO are cut too, and partial ones are on one device.
// DIFFERS: the reference refuses the first and adds up the second
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @constants() -> (tensor<2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{}], unreduced={"y"}>})
// CHECK-NEXT: %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
// CHECK-NEXT: %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK-NEXT: %0 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c = stablehlo.constant dense<[true, false, true, false]> : tensor<4xi1>
// CHECK-NEXT: %1 = stablehlo.dynamic_slice %c, %0, sizes = [1] : (tensor<4xi1>, tensor<ui32>) -> tensor<1xi1>
// CHECK-NEXT: %2 = stablehlo.reshape %1 : (tensor<1xi1>) -> tensor<i1>
// CHECK-NEXT: %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK-NEXT: %3 = stablehlo.select %2, %cst_0, %cst_1 : tensor<i1>, tensor<4xf32>
// CHECK-NEXT: return %cst, %3 : tensor<2xf32>, tensor<4xf32>
func.func @constants() -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{}], unreduced={"y"}>}) {
  %0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} dense<1.0> : tensor<4xf32>
  %1 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}], unreduced={"y"}>]>} dense<1.0> : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// Random numbers of a shard, the same on all devices that hold it.
// DIFFERS: the reference refuses it
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @random(%arg0: tensor<f32>) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>})
// CHECK-NEXT: %c = stablehlo.constant dense<8> : tensor<1xi64>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<4> : tensor<1xi64>
// CHECK-NEXT: %0 = stablehlo.rng %arg0, %arg0, %c_0, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
// CHECK-NEXT: %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK-NEXT: %1 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c_1 = stablehlo.constant dense<[true, false, true, false]> : tensor<4xi1>
// CHECK-NEXT: %2 = stablehlo.dynamic_slice %c_1, %1, sizes = [1] : (tensor<4xi1>, tensor<ui32>) -> tensor<1xi1>
// CHECK-NEXT: %3 = stablehlo.reshape %2 : (tensor<1xi1>) -> tensor<i1>
// CHECK-NEXT: %4 = stablehlo.select %3, %0, %cst : tensor<i1>, tensor<4xf32>
// CHECK-NEXT: %5 = "stablehlo.all_reduce"(%4) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1], [2, 3{{\]\]}}> : tensor<2x2xi64>, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT: %6 = stablehlo.add %arg1, %arg2 : tensor<f32>
// CHECK-NEXT: stablehlo.return %6 : tensor<f32>
// CHECK-NEXT: }) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %5 : tensor<4xf32>
func.func @random(%arg0: tensor<f32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  %0 = stablehlo.constant dense<8> : tensor<1xi64>
  %1 = stablehlo.rng %arg0, %arg0, %0, distribution = UNIFORM {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// Where padding moves elements between devices, they are gathered first.
// DIFFERS: the reference loses elements
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @pad(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<f32>) -> (tensor<6xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>})
// CHECK-NEXT: %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 2], [1, 3{{\]\]}}> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4xf32>) -> tensor<8xf32>
// CHECK-NEXT: %1 = stablehlo.pad %0, %arg1, low = [4], high = [0], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<12xf32>
// CHECK-NEXT: %2 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c = stablehlo.constant dense<[0, 0, 6, 6]> : tensor<4xi32>
// CHECK-NEXT: %3 = stablehlo.dynamic_slice %c, %2, sizes = [1] : (tensor<4xi32>, tensor<ui32>) -> tensor<1xi32>
// CHECK-NEXT: %4 = stablehlo.reshape %3 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %5 = stablehlo.dynamic_slice %1, %4, sizes = [6] : (tensor<12xf32>, tensor<i32>) -> tensor<6xf32>
// CHECK-NEXT: return %5 : tensor<6xf32>
func.func @pad(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<f32>) -> (tensor<12xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  %0 = stablehlo.pad %arg0, %arg1, low = [4], high = [0], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<12xf32>
  return %0 : tensor<12xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// Arguments of a function without a body become local too.
// DIFFERS: the reference loses the argument
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func private @outside(tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<8xf32>
func.func private @outside(tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<8xf32>

// -----

// NEWER: tables, groups and special treatment are others
// Of an empty dimension every shard is empty, however it is sharded.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @empty(
// CHECK-NEXT: stablehlo.sine %arg0 {{.*}} : tensor<0x4xf32>
func.func @empty(%arg0: tensor<0x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) -> (tensor<0x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"y", "x"}, {}]>}) {
  %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"y", "x"}, {}]>]>} : tensor<0x4xf32>
  return %0 : tensor<0x4xf32>
}
