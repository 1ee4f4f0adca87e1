// RUN: sdy_opt %s -split-input-file -pyshardy-exchange-shards | FileCheck %s

// A part that begins in the second shard: one permutation, and what stays.
// CHECK: sdy.mesh @mesh = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}) -> tensor<8xf32> {
// CHECK-NEXT: %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0, %cst) in_shardings=[<@mesh, [{"x", "y"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x", "y"}]>] manual_axes={"x", "y"} (%arg1: tensor<4xf32>, %arg2: tensor<f32>) {
// CHECK-NEXT: %1 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %2 = stablehlo.convert %1 : (tensor<ui32>) -> tensor<i32>
// CHECK-NEXT: %c = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %3 = stablehlo.divide %2, %c : tensor<i32>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %4 = stablehlo.remainder %3, %c_0 : tensor<i32>
// CHECK-NEXT: %c_1 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %5 = stablehlo.remainder %2, %c_1 : tensor<i32>
// CHECK-NEXT: %c_2 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %6 = stablehlo.multiply %4, %c_2 : tensor<i32>
// CHECK-NEXT: %7 = stablehlo.add %6, %5 : tensor<i32>
// CHECK-NEXT: %c_3 = stablehlo.constant dense<[4, 2, 0, 0]> : tensor<4xi32>
// CHECK-NEXT: %8 = stablehlo.dynamic_slice %c_3, %7, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
// CHECK-NEXT: %9 = stablehlo.reshape %8 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %c_4 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %10 = stablehlo.dynamic_slice %arg1, %9, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
// CHECK-NEXT: %11 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<2xf32>
// CHECK-NEXT: %12 = stablehlo.iota dim = 0 : tensor<2xi32>
// CHECK-NEXT: %c_5 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %13 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<2xi32>
// CHECK-NEXT: %c_6 = stablehlo.constant dense<[0, 2, 2, 0]> : tensor<4xi32>
// CHECK-NEXT: %14 = stablehlo.dynamic_slice %c_6, %7, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
// CHECK-NEXT: %15 = stablehlo.reshape %14 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %16 = stablehlo.broadcast_in_dim %15, dims = [] : (tensor<i32>) -> tensor<2xi32>
// CHECK-NEXT: %17 = stablehlo.compare GE, %12, %13 : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
// CHECK-NEXT: %18 = stablehlo.compare LT, %12, %16 : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
// CHECK-NEXT: %19 = stablehlo.and %17, %18 : tensor<2xi1>
// CHECK-NEXT: %20 = stablehlo.broadcast_in_dim %19, dims = [0] : (tensor<2xi1>) -> tensor<2xi1>
// CHECK-NEXT: %21 = stablehlo.select %20, %10, %11 : tensor<2xi1>, tensor<2xf32>
// CHECK-NEXT: %c_7 = stablehlo.constant dense<[0, 0, 2, 4]> : tensor<4xi32>
// CHECK-NEXT: %22 = stablehlo.dynamic_slice %c_7, %7, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
// CHECK-NEXT: %23 = stablehlo.reshape %22 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %c_8 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %24 = stablehlo.dynamic_slice %arg1, %23, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
// CHECK-NEXT: %25 = "stablehlo.collective_permute"(%24) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<{{\[\[}}1, 0], [2, 3{{\]\]}}> : tensor<2x2xi64>}> : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT: %26 = stablehlo.iota dim = 0 : tensor<2xi32>
// CHECK-NEXT: %c_9 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %27 = stablehlo.broadcast_in_dim %c_9, dims = [] : (tensor<i32>) -> tensor<2xi32>
// CHECK-NEXT: %c_10 = stablehlo.constant dense<[2, 0, 0, 2]> : tensor<4xi32>
// CHECK-NEXT: %28 = stablehlo.dynamic_slice %c_10, %7, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
// CHECK-NEXT: %29 = stablehlo.reshape %28 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %30 = stablehlo.broadcast_in_dim %29, dims = [] : (tensor<i32>) -> tensor<2xi32>
// CHECK-NEXT: %31 = stablehlo.compare GE, %26, %27 : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
// CHECK-NEXT: %32 = stablehlo.compare LT, %26, %30 : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
// CHECK-NEXT: %33 = stablehlo.and %31, %32 : tensor<2xi1>
// CHECK-NEXT: %34 = stablehlo.broadcast_in_dim %33, dims = [0] : (tensor<2xi1>) -> tensor<2xi1>
// CHECK-NEXT: %35 = stablehlo.select %34, %25, %21 : tensor<2xi1>, tensor<2xf32>
// CHECK-NEXT: sdy.return %35 : tensor<2xf32>
// CHECK-NEXT: } : (tensor<16xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT: return %0 : tensor<8xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.slice %a [4:12] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", "y"}]>]>} : (tensor<16xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// The dimension that is not sharded is cut before anything is sent; every second element of the other one goes.
// CHECK: sdy.mesh @mesh = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<2x4xf32> {
// CHECK-NEXT: %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0, %cst) in_shardings=[<@mesh, [{}, {"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{}, {"x"}]>] manual_axes={"x"} (%arg1: tensor<8x6xf32>, %arg2: tensor<f32>) {
// CHECK-NEXT: %1 = stablehlo.slice %arg1 [1:3, 0:6] : (tensor<8x6xf32>) -> tensor<2x6xf32>
// CHECK-NEXT: %2 = stablehlo.slice %1 [0:2, 1:6] : (tensor<2x6xf32>) -> tensor<2x5xf32>
// CHECK-NEXT: %3 = stablehlo.slice %2 [0:2, 0:5:2] : (tensor<2x5xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: %4 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %5 = stablehlo.convert %4 : (tensor<ui32>) -> tensor<i32>
// CHECK-NEXT: %c = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %6 = stablehlo.divide %5, %c : tensor<i32>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %7 = stablehlo.remainder %6, %c_0 : tensor<i32>
// CHECK-NEXT: %c_1 = stablehlo.constant dense<-1> : tensor<i32>
// CHECK-NEXT: %8 = stablehlo.multiply %7, %c_1 : tensor<i32>
// CHECK-NEXT: %c_2 = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT: %9 = stablehlo.add %8, %c_2 : tensor<i32>
// CHECK-NEXT: %c_3 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %10 = stablehlo.dynamic_slice %3, %c_3, %9, sizes = [2, 2] : (tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
// CHECK-NEXT: sdy.return %10 : tensor<2x2xf32>
// CHECK-NEXT: } : (tensor<8x12xf32>, tensor<f32>) -> tensor<2x4xf32>
// CHECK-NEXT: return %0 : tensor<2x4xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<2x4xf32> {
  %0 = stablehlo.slice %a [1:3, 3:11:2] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<8x12xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// Padding between the elements is put there after they have been sent.
// CHECK: sdy.mesh @mesh = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) -> tensor<12xi32> {
// CHECK-NEXT: %c = stablehlo.constant dense<7> : tensor<i32>
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0, %c) in_shardings=[<@mesh, [{"y"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} (%arg1: tensor<2xi32>, %arg2: tensor<i32>) {
// CHECK-NEXT: %1 = stablehlo.pad %arg1, %arg2, low = [2], high = [0], interior = [0] : (tensor<2xi32>, tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: %2 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %3 = stablehlo.convert %2 : (tensor<ui32>) -> tensor<i32>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %4 = stablehlo.remainder %3, %c_0 : tensor<i32>
// CHECK-NEXT: %c_1 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %5 = stablehlo.dynamic_slice %1, %4, sizes = [3] : (tensor<4xi32>, tensor<i32>) -> tensor<3xi32>
// CHECK-NEXT: %6 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<i32>) -> tensor<3xi32>
// CHECK-NEXT: %7 = stablehlo.iota dim = 0 : tensor<3xi32>
// CHECK-NEXT: %c_2 = stablehlo.constant dense<-1> : tensor<i32>
// CHECK-NEXT: %8 = stablehlo.multiply %4, %c_2 : tensor<i32>
// CHECK-NEXT: %c_3 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %9 = stablehlo.add %8, %c_3 : tensor<i32>
// CHECK-NEXT: %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i32>) -> tensor<3xi32>
// CHECK-NEXT: %c_4 = stablehlo.constant dense<3> : tensor<i32>
// CHECK-NEXT: %11 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<3xi32>
// CHECK-NEXT: %12 = stablehlo.compare GE, %7, %10 : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
// CHECK-NEXT: %13 = stablehlo.compare LT, %7, %11 : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
// CHECK-NEXT: %14 = stablehlo.and %12, %13 : tensor<3xi1>
// CHECK-NEXT: %15 = stablehlo.broadcast_in_dim %14, dims = [0] : (tensor<3xi1>) -> tensor<3xi1>
// CHECK-NEXT: %16 = stablehlo.select %15, %5, %6 : tensor<3xi1>, tensor<3xi32>
// CHECK-NEXT: %17 = stablehlo.slice %arg1 [1:2] : (tensor<2xi32>) -> tensor<1xi32>
// CHECK-NEXT: %18 = "stablehlo.collective_permute"(%17) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<{{\[\[}}0, 1], [2, 3{{\]\]}}> : tensor<2x2xi64>}> : (tensor<1xi32>) -> tensor<1xi32>
// CHECK-NEXT: %19 = stablehlo.pad %18, %arg2, low = [0], high = [2], interior = [0] : (tensor<1xi32>, tensor<i32>) -> tensor<3xi32>
// CHECK-NEXT: %20 = stablehlo.iota dim = 0 : tensor<3xi32>
// CHECK-NEXT: %c_5 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %21 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<3xi32>
// CHECK-NEXT: %22 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<i32>) -> tensor<3xi32>
// CHECK-NEXT: %23 = stablehlo.compare GE, %20, %21 : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
// CHECK-NEXT: %24 = stablehlo.compare LT, %20, %22 : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
// CHECK-NEXT: %25 = stablehlo.and %23, %24 : tensor<3xi1>
// CHECK-NEXT: %26 = stablehlo.broadcast_in_dim %25, dims = [0] : (tensor<3xi1>) -> tensor<3xi1>
// CHECK-NEXT: %27 = stablehlo.select %26, %19, %16 : tensor<3xi1>, tensor<3xi32>
// CHECK-NEXT: %28 = stablehlo.pad %27, %arg2, low = [1], high = [1], interior = [1] : (tensor<3xi32>, tensor<i32>) -> tensor<7xi32>
// CHECK-NEXT: %29 = stablehlo.slice %28 [1:7] : (tensor<7xi32>) -> tensor<6xi32>
// CHECK-NEXT: sdy.return %29 : tensor<6xi32>
// CHECK-NEXT: } : (tensor<4xi32>, tensor<i32>) -> tensor<12xi32>
// CHECK-NEXT: return %0 : tensor<12xi32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) -> tensor<12xi32> {
  %p = stablehlo.constant dense<7> : tensor<i32>
  %0 = stablehlo.pad %a, %p, low = [4], high = [1], interior = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : (tensor<4xi32>, tensor<i32>) -> tensor<12xi32>
  return %0 : tensor<12xi32>
}

// -----

// An uneven dimension is reversed in every shard before; an even one is left to the reversed mesh.
// CHECK: sdy.mesh @mesh = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<7x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> (tensor<7x8xf32>, tensor<7x8xf32>) {
// CHECK-NEXT: %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %0 = stablehlo.pad %arg0, %cst, low = [0, 0], high = [1, 0], interior = [0, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : (tensor<7x8xf32>, tensor<f32>) -> tensor<8x8xf32>
// CHECK-NEXT: %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %1 = sdy.manual_computation(%0, %cst_0) in_shardings=[<@mesh, [{"x"}, {"y"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x", "y"} (%arg1: tensor<4x4xf32>, %arg2: tensor<f32>) {
// CHECK-NEXT: %4 = stablehlo.reverse %arg1, dims = [0] : tensor<4x4xf32>
// CHECK-NEXT: %5 = stablehlo.slice %4 [0:1, 0:4] : (tensor<4x4xf32>) -> tensor<1x4xf32>
// CHECK-NEXT: %6 = stablehlo.pad %5, %arg2, low = [3, 0], high = [0, 0], interior = [0, 0] : (tensor<1x4xf32>, tensor<f32>) -> tensor<4x4xf32>
// CHECK-NEXT: %7 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
// CHECK-NEXT: %8 = stablehlo.iota dim = 0 : tensor<4xi32>
// CHECK-NEXT: %9 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %10 = stablehlo.convert %9 : (tensor<ui32>) -> tensor<i32>
// CHECK-NEXT: %c = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %11 = stablehlo.divide %10, %c : tensor<i32>
// CHECK-NEXT: %c_1 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %12 = stablehlo.remainder %11, %c_1 : tensor<i32>
// CHECK-NEXT: %c_2 = stablehlo.constant dense<-3> : tensor<i32>
// CHECK-NEXT: %13 = stablehlo.multiply %12, %c_2 : tensor<i32>
// CHECK-NEXT: %c_3 = stablehlo.constant dense<3> : tensor<i32>
// CHECK-NEXT: %14 = stablehlo.add %13, %c_3 : tensor<i32>
// CHECK-NEXT: %15 = stablehlo.broadcast_in_dim %14, dims = [] : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: %c_4 = stablehlo.constant dense<-4> : tensor<i32>
// CHECK-NEXT: %16 = stablehlo.multiply %12, %c_4 : tensor<i32>
// CHECK-NEXT: %c_5 = stablehlo.constant dense<4> : tensor<i32>
// CHECK-NEXT: %17 = stablehlo.add %16, %c_5 : tensor<i32>
// CHECK-NEXT: %18 = stablehlo.broadcast_in_dim %17, dims = [] : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: %19 = stablehlo.compare GE, %8, %15 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
// CHECK-NEXT: %20 = stablehlo.compare LT, %8, %18 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
// CHECK-NEXT: %21 = stablehlo.and %19, %20 : tensor<4xi1>
// CHECK-NEXT: %22 = stablehlo.broadcast_in_dim %21, dims = [0] : (tensor<4xi1>) -> tensor<4x4xi1>
// CHECK-NEXT: %23 = stablehlo.select %22, %6, %7 : tensor<4x4xi1>, tensor<4x4xf32>
// CHECK-NEXT: %24 = stablehlo.slice %4 [1:4, 0:4] : (tensor<4x4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: %25 = "stablehlo.collective_permute"(%24) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<{{\[\[}}0, 2], [1, 3], [2, 0], [3, 1{{\]\]}}> : tensor<4x2xi64>}> : (tensor<3x4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: %26 = stablehlo.pad %25, %arg2, low = [0, 0], high = [1, 0], interior = [0, 0] : (tensor<3x4xf32>, tensor<f32>) -> tensor<4x4xf32>
// CHECK-NEXT: %27 = stablehlo.iota dim = 0 : tensor<4xi32>
// CHECK-NEXT: %c_6 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %28 = stablehlo.broadcast_in_dim %c_6, dims = [] : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: %c_7 = stablehlo.constant dense<3> : tensor<i32>
// CHECK-NEXT: %29 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: %30 = stablehlo.compare GE, %27, %28 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
// CHECK-NEXT: %31 = stablehlo.compare LT, %27, %29 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
// CHECK-NEXT: %32 = stablehlo.and %30, %31 : tensor<4xi1>
// CHECK-NEXT: %33 = stablehlo.broadcast_in_dim %32, dims = [0] : (tensor<4xi1>) -> tensor<4x4xi1>
// CHECK-NEXT: %34 = stablehlo.select %33, %26, %23 : tensor<4x4xi1>, tensor<4x4xf32>
// CHECK-NEXT: sdy.return %34 : tensor<4x4xf32>
// CHECK-NEXT: } : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
// CHECK-NEXT: %2 = stablehlo.slice %1 [0:7, 0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : (tensor<8x8xf32>) -> tensor<7x8xf32>
// CHECK-NEXT: %3 = stablehlo.reverse %arg0, dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : tensor<7x8xf32>
// CHECK-NEXT: return %2, %3 : tensor<7x8xf32>, tensor<7x8xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<7x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> (tensor<7x8xf32>, tensor<7x8xf32>) {
  %0 = stablehlo.reverse %a, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : tensor<7x8xf32>
  %1 = stablehlo.reverse %a, dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : tensor<7x8xf32>
  return %0, %1 : tensor<7x8xf32>, tensor<7x8xf32>
}

// -----

// Of what is joined, slices are taken where they are, and constants are made in place.
// CHECK: sdy.mesh @mesh = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<10xf32> {
// CHECK-NEXT: %cst = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<1.000000e+00> : tensor<2xf32>
// CHECK-NEXT: %cst_0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} dense<1.000000e+00> : tensor<2xf32>
// CHECK-NEXT: %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0, %cst_0, %cst_1) in_shardings=[<@mesh, [{"x"}]>, <@mesh, [{}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<4xf32>, %arg2: tensor<2xf32>, %arg3: tensor<f32>) {
// CHECK-NEXT: %1 = stablehlo.concatenate %arg1, %arg2, dim = 0 : (tensor<4xf32>, tensor<2xf32>) -> tensor<6xf32>
// CHECK-NEXT: %2 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %3 = stablehlo.convert %2 : (tensor<ui32>) -> tensor<i32>
// CHECK-NEXT: %c = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %4 = stablehlo.divide %3, %c : tensor<i32>
// CHECK-NEXT: %c_2 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %5 = stablehlo.remainder %4, %c_2 : tensor<i32>
// CHECK-NEXT: %c_3 = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT: %6 = stablehlo.add %5, %c_3 : tensor<i32>
// CHECK-NEXT: %c_4 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %7 = stablehlo.dynamic_slice %1, %6, sizes = [3] : (tensor<6xf32>, tensor<i32>) -> tensor<3xf32>
// CHECK-NEXT: %8 = stablehlo.pad %7, %arg3, low = [0], high = [2], interior = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<5xf32>
// CHECK-NEXT: %9 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<f32>) -> tensor<5xf32>
// CHECK-NEXT: %10 = stablehlo.iota dim = 0 : tensor<5xi32>
// CHECK-NEXT: %c_5 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %11 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<5xi32>
// CHECK-NEXT: %c_6 = stablehlo.constant dense<-1> : tensor<i32>
// CHECK-NEXT: %12 = stablehlo.multiply %5, %c_6 : tensor<i32>
// CHECK-NEXT: %c_7 = stablehlo.constant dense<3> : tensor<i32>
// CHECK-NEXT: %13 = stablehlo.add %12, %c_7 : tensor<i32>
// CHECK-NEXT: %14 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<i32>) -> tensor<5xi32>
// CHECK-NEXT: %15 = stablehlo.compare GE, %10, %11 : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
// CHECK-NEXT: %16 = stablehlo.compare LT, %10, %14 : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
// CHECK-NEXT: %17 = stablehlo.and %15, %16 : tensor<5xi1>
// CHECK-NEXT: %18 = stablehlo.broadcast_in_dim %17, dims = [0] : (tensor<5xi1>) -> tensor<5xi1>
// CHECK-NEXT: %19 = stablehlo.select %18, %8, %9 : tensor<5xi1>, tensor<5xf32>
// CHECK-NEXT: %20 = stablehlo.slice %1 [4:6] : (tensor<6xf32>) -> tensor<2xf32>
// CHECK-NEXT: %21 = stablehlo.pad %20, %arg3, low = [3], high = [0], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<5xf32>
// CHECK-NEXT: %22 = stablehlo.iota dim = 0 : tensor<5xi32>
// CHECK-NEXT: %c_8 = stablehlo.constant dense<3> : tensor<i32>
// CHECK-NEXT: %23 = stablehlo.multiply %5, %c_8 : tensor<i32>
// CHECK-NEXT: %24 = stablehlo.broadcast_in_dim %23, dims = [] : (tensor<i32>) -> tensor<5xi32>
// CHECK-NEXT: %c_9 = stablehlo.constant dense<5> : tensor<i32>
// CHECK-NEXT: %25 = stablehlo.multiply %5, %c_9 : tensor<i32>
// CHECK-NEXT: %26 = stablehlo.broadcast_in_dim %25, dims = [] : (tensor<i32>) -> tensor<5xi32>
// CHECK-NEXT: %27 = stablehlo.compare GE, %22, %24 : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
// CHECK-NEXT: %28 = stablehlo.compare LT, %22, %26 : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
// CHECK-NEXT: %29 = stablehlo.and %27, %28 : tensor<5xi1>
// CHECK-NEXT: %30 = stablehlo.broadcast_in_dim %29, dims = [0] : (tensor<5xi1>) -> tensor<5xi1>
// CHECK-NEXT: %31 = stablehlo.select %30, %21, %19 : tensor<5xi1>, tensor<5xf32>
// CHECK-NEXT: %32 = stablehlo.slice %1 [0:2] : (tensor<6xf32>) -> tensor<2xf32>
// CHECK-NEXT: %33 = "stablehlo.collective_permute"(%32) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<{{\[\[}}0, 2], [1, 3], [2, 0], [3, 1{{\]\]}}> : tensor<4x2xi64>}> : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT: %34 = stablehlo.pad %33, %arg3, low = [3], high = [1], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT: %c_10 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %35 = stablehlo.dynamic_slice %34, %5, sizes = [5] : (tensor<6xf32>, tensor<i32>) -> tensor<5xf32>
// CHECK-NEXT: %36 = stablehlo.iota dim = 0 : tensor<5xi32>
// CHECK-NEXT: %c_11 = stablehlo.constant dense<-1> : tensor<i32>
// CHECK-NEXT: %37 = stablehlo.multiply %5, %c_11 : tensor<i32>
// CHECK-NEXT: %c_12 = stablehlo.constant dense<3> : tensor<i32>
// CHECK-NEXT: %38 = stablehlo.add %37, %c_12 : tensor<i32>
// CHECK-NEXT: %39 = stablehlo.broadcast_in_dim %38, dims = [] : (tensor<i32>) -> tensor<5xi32>
// CHECK-NEXT: %c_13 = stablehlo.constant dense<-2> : tensor<i32>
// CHECK-NEXT: %40 = stablehlo.multiply %5, %c_13 : tensor<i32>
// CHECK-NEXT: %c_14 = stablehlo.constant dense<5> : tensor<i32>
// CHECK-NEXT: %41 = stablehlo.add %40, %c_14 : tensor<i32>
// CHECK-NEXT: %42 = stablehlo.broadcast_in_dim %41, dims = [] : (tensor<i32>) -> tensor<5xi32>
// CHECK-NEXT: %43 = stablehlo.compare GE, %36, %39 : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
// CHECK-NEXT: %44 = stablehlo.compare LT, %36, %42 : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
// CHECK-NEXT: %45 = stablehlo.and %43, %44 : tensor<5xi1>
// CHECK-NEXT: %46 = stablehlo.broadcast_in_dim %45, dims = [0] : (tensor<5xi1>) -> tensor<5xi1>
// CHECK-NEXT: %47 = stablehlo.select %46, %35, %31 : tensor<5xi1>, tensor<5xf32>
// CHECK-NEXT: sdy.return %47 : tensor<5xf32>
// CHECK-NEXT: } : (tensor<8xf32>, tensor<2xf32>, tensor<f32>) -> tensor<10xf32>
// CHECK-NEXT: return %0 : tensor<10xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<10xf32> {
  %0 = stablehlo.slice %a [1:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<7xf32>
  %1 = stablehlo.slice %a [0:1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<1xf32>
  %c = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<1.0> : tensor<2xf32>
  %2 = stablehlo.concatenate %0, %1, %c, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<7xf32>, tensor<1xf32>, tensor<2xf32>) -> tensor<10xf32>
  return %2 : tensor<10xf32>
}

// -----

// A dimension in three parts whose second part is sharded: every shard needs an interval of each.
// CHECK: sdy.mesh @mesh = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<3x4xf32> {
// CHECK-NEXT: %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0, %cst) in_shardings=[<@mesh, [{"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{}, {"x"}]>] manual_axes={"x"} (%arg1: tensor<6xf32>, %arg2: tensor<f32>) {
// CHECK-NEXT: %1 = stablehlo.reshape %arg1 : (tensor<6xf32>) -> tensor<6xf32>
// CHECK-NEXT: %2 = stablehlo.slice %1 [0:2] : (tensor<6xf32>) -> tensor<2xf32>
// CHECK-NEXT: %3 = stablehlo.pad %2, %arg2, low = [2], high = [4], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT: %4 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %5 = stablehlo.convert %4 : (tensor<ui32>) -> tensor<i32>
// CHECK-NEXT: %c = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %6 = stablehlo.divide %5, %c : tensor<i32>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %7 = stablehlo.remainder %6, %c_0 : tensor<i32>
// CHECK-NEXT: %c_1 = stablehlo.constant dense<-2> : tensor<i32>
// CHECK-NEXT: %8 = stablehlo.multiply %7, %c_1 : tensor<i32>
// CHECK-NEXT: %c_2 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %9 = stablehlo.add %8, %c_2 : tensor<i32>
// CHECK-NEXT: %c_3 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %10 = stablehlo.dynamic_slice %3, %9, sizes = [6] : (tensor<8xf32>, tensor<i32>) -> tensor<6xf32>
// CHECK-NEXT: %11 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<6xf32>
// CHECK-NEXT: %12 = stablehlo.iota dim = 0 : tensor<6xi32>
// CHECK-NEXT: %c_4 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %13 = stablehlo.multiply %7, %c_4 : tensor<i32>
// CHECK-NEXT: %14 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<i32>) -> tensor<6xi32>
// CHECK-NEXT: %c_5 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %15 = stablehlo.multiply %7, %c_5 : tensor<i32>
// CHECK-NEXT: %c_6 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %16 = stablehlo.add %15, %c_6 : tensor<i32>
// CHECK-NEXT: %17 = stablehlo.broadcast_in_dim %16, dims = [] : (tensor<i32>) -> tensor<6xi32>
// CHECK-NEXT: %18 = stablehlo.compare GE, %12, %14 : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
// CHECK-NEXT: %19 = stablehlo.compare LT, %12, %17 : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
// CHECK-NEXT: %20 = stablehlo.and %18, %19 : tensor<6xi1>
// CHECK-NEXT: %21 = stablehlo.broadcast_in_dim %20, dims = [0] : (tensor<6xi1>) -> tensor<6xi1>
// CHECK-NEXT: %22 = stablehlo.select %21, %10, %11 : tensor<6xi1>, tensor<6xf32>
// CHECK-NEXT: %23 = stablehlo.slice %1 [4:6] : (tensor<6xf32>) -> tensor<2xf32>
// CHECK-NEXT: %24 = stablehlo.pad %23, %arg2, low = [4], high = [2], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT: %c_7 = stablehlo.constant dense<-2> : tensor<i32>
// CHECK-NEXT: %25 = stablehlo.multiply %7, %c_7 : tensor<i32>
// CHECK-NEXT: %c_8 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %26 = stablehlo.add %25, %c_8 : tensor<i32>
// CHECK-NEXT: %c_9 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %27 = stablehlo.dynamic_slice %24, %26, sizes = [6] : (tensor<8xf32>, tensor<i32>) -> tensor<6xf32>
// CHECK-NEXT: %28 = stablehlo.iota dim = 0 : tensor<6xi32>
// CHECK-NEXT: %c_10 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %29 = stablehlo.multiply %7, %c_10 : tensor<i32>
// CHECK-NEXT: %c_11 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %30 = stablehlo.add %29, %c_11 : tensor<i32>
// CHECK-NEXT: %31 = stablehlo.broadcast_in_dim %30, dims = [] : (tensor<i32>) -> tensor<6xi32>
// CHECK-NEXT: %c_12 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %32 = stablehlo.multiply %7, %c_12 : tensor<i32>
// CHECK-NEXT: %c_13 = stablehlo.constant dense<4> : tensor<i32>
// CHECK-NEXT: %33 = stablehlo.add %32, %c_13 : tensor<i32>
// CHECK-NEXT: %34 = stablehlo.broadcast_in_dim %33, dims = [] : (tensor<i32>) -> tensor<6xi32>
// CHECK-NEXT: %35 = stablehlo.compare GE, %28, %31 : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
// CHECK-NEXT: %36 = stablehlo.compare LT, %28, %34 : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
// CHECK-NEXT: %37 = stablehlo.and %35, %36 : tensor<6xi1>
// CHECK-NEXT: %38 = stablehlo.broadcast_in_dim %37, dims = [0] : (tensor<6xi1>) -> tensor<6xi1>
// CHECK-NEXT: %39 = stablehlo.select %38, %27, %22 : tensor<6xi1>, tensor<6xf32>
// CHECK-NEXT: %40 = stablehlo.slice %1 [2:4] : (tensor<6xf32>) -> tensor<2xf32>
// CHECK-NEXT: %41 = "stablehlo.collective_permute"(%40) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<{{\[\[}}0, 2], [1, 3], [2, 0], [3, 1{{\]\]}}> : tensor<4x2xi64>}> : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT: %42 = stablehlo.pad %41, %arg2, low = [4], high = [4], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<10xf32>
// CHECK-NEXT: %c_14 = stablehlo.constant dense<4> : tensor<i32>
// CHECK-NEXT: %43 = stablehlo.multiply %7, %c_14 : tensor<i32>
// CHECK-NEXT: %c_15 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %44 = stablehlo.dynamic_slice %42, %43, sizes = [6] : (tensor<10xf32>, tensor<i32>) -> tensor<6xf32>
// CHECK-NEXT: %45 = stablehlo.iota dim = 0 : tensor<6xi32>
// CHECK-NEXT: %c_16 = stablehlo.constant dense<-4> : tensor<i32>
// CHECK-NEXT: %46 = stablehlo.multiply %7, %c_16 : tensor<i32>
// CHECK-NEXT: %c_17 = stablehlo.constant dense<4> : tensor<i32>
// CHECK-NEXT: %47 = stablehlo.add %46, %c_17 : tensor<i32>
// CHECK-NEXT: %48 = stablehlo.broadcast_in_dim %47, dims = [] : (tensor<i32>) -> tensor<6xi32>
// CHECK-NEXT: %c_18 = stablehlo.constant dense<-4> : tensor<i32>
// CHECK-NEXT: %49 = stablehlo.multiply %7, %c_18 : tensor<i32>
// CHECK-NEXT: %c_19 = stablehlo.constant dense<6> : tensor<i32>
// CHECK-NEXT: %50 = stablehlo.add %49, %c_19 : tensor<i32>
// CHECK-NEXT: %51 = stablehlo.broadcast_in_dim %50, dims = [] : (tensor<i32>) -> tensor<6xi32>
// CHECK-NEXT: %52 = stablehlo.compare GE, %45, %48 : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
// CHECK-NEXT: %53 = stablehlo.compare LT, %45, %51 : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
// CHECK-NEXT: %54 = stablehlo.and %52, %53 : tensor<6xi1>
// CHECK-NEXT: %55 = stablehlo.broadcast_in_dim %54, dims = [0] : (tensor<6xi1>) -> tensor<6xi1>
// CHECK-NEXT: %56 = stablehlo.select %55, %44, %39 : tensor<6xi1>, tensor<6xf32>
// CHECK-NEXT: %57 = stablehlo.reshape %56 : (tensor<6xf32>) -> tensor<3x2xf32>
// CHECK-NEXT: sdy.return %57 : tensor<3x2xf32>
// CHECK-NEXT: } : (tensor<12xf32>, tensor<f32>) -> tensor<3x4xf32>
// CHECK-NEXT: return %0 : tensor<3x4xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<3x4xf32> {
  %0 = stablehlo.reshape %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<12xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

// One element that all devices need: those that have none add nothing, and no zero loses its sign.
// CHECK: sdy.mesh @mesh = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<1x4xf32> {
// CHECK-NEXT: %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0, %cst) in_shardings=[<@mesh, [{"x"}, {}]>, <@mesh, []>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"x"} (%arg1: tensor<4x4xf32>, %arg2: tensor<f32>) {
// CHECK-NEXT: %cst_0 = stablehlo.constant dense<-0.000000e+00> : tensor<f32>
// CHECK-NEXT: %2 = stablehlo.pad %arg1, %cst_0, low = [1, 0], high = [1, 0], interior = [0, 0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<6x4xf32>
// CHECK-NEXT: %3 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %4 = stablehlo.convert %3 : (tensor<ui32>) -> tensor<i32>
// CHECK-NEXT: %c = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %5 = stablehlo.divide %4, %c : tensor<i32>
// CHECK-NEXT: %c_1 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %6 = stablehlo.remainder %5, %c_1 : tensor<i32>
// CHECK-NEXT: %c_2 = stablehlo.constant dense<-3> : tensor<i32>
// CHECK-NEXT: %7 = stablehlo.multiply %6, %c_2 : tensor<i32>
// CHECK-NEXT: %c_3 = stablehlo.constant dense<5> : tensor<i32>
// CHECK-NEXT: %8 = stablehlo.add %7, %c_3 : tensor<i32>
// CHECK-NEXT: %c_4 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %9 = stablehlo.dynamic_slice %2, %8, %c_4, sizes = [1, 4] : (tensor<6x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
// CHECK-NEXT: %10 = stablehlo.iota dim = 0 : tensor<1xi32>
// CHECK-NEXT: %c_5 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %11 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<1xi32>
// CHECK-NEXT: %c_6 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %12 = stablehlo.multiply %6, %c_6 : tensor<i32>
// CHECK-NEXT: %c_7 = stablehlo.constant dense<-1> : tensor<i32>
// CHECK-NEXT: %13 = stablehlo.add %12, %c_7 : tensor<i32>
// CHECK-NEXT: %14 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<i32>) -> tensor<1xi32>
// CHECK-NEXT: %15 = stablehlo.compare GE, %10, %11 : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
// CHECK-NEXT: %16 = stablehlo.compare LT, %10, %14 : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
// CHECK-NEXT: %17 = stablehlo.and %15, %16 : tensor<1xi1>
// CHECK-NEXT: %18 = stablehlo.broadcast_in_dim %17, dims = [0] : (tensor<1xi1>) -> tensor<1x4xi1>
// CHECK-NEXT: %19 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x4xf32>
// CHECK-NEXT: %20 = stablehlo.select %18, %9, %19 : tensor<1x4xi1>, tensor<1x4xf32>
// CHECK-NEXT: %21 = "stablehlo.all_reduce"(%20) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 2], [1, 3{{\]\]}}> : tensor<2x2xi64>, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
// CHECK-NEXT: %22 = stablehlo.add %arg3, %arg4 : tensor<f32>
// CHECK-NEXT: stablehlo.return %22 : tensor<f32>
// CHECK-NEXT: }) : (tensor<1x4xf32>) -> tensor<1x4xf32>
// CHECK-NEXT: sdy.return %21 : tensor<1x4xf32>
// CHECK-NEXT: } : (tensor<8x4xf32>, tensor<f32>) -> tensor<1x4xf32>
// CHECK-NEXT: %1 = sdy.reshard %0 <@mesh, [{}, {}]> : tensor<1x4xf32>
// CHECK-NEXT: return %1 : tensor<1x4xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<1x4xf32> {
  %0 = stablehlo.slice %a [5:6, 0:4] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x4xf32>) -> tensor<1x4xf32>
  %1 = sdy.reshard %0 <@mesh, [{}, {}]> : tensor<1x4xf32>
  return %1 : tensor<1x4xf32>
}

// -----

// Nothing moves: the front of every shard, a split of whole shards, unreduced values.
// CHECK: sdy.mesh @mesh = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}], unreduced={"y"}>}) -> (tensor<7xf32>, tensor<2x4xf32>, tensor<4xf32>) {
// CHECK-NEXT: %0 = stablehlo.slice %arg0 [0:7] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<7xf32>
// CHECK-NEXT: %1 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8xf32>) -> tensor<2x4xf32>
// CHECK-NEXT: %2 = stablehlo.slice %arg1 [2:6] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}], unreduced={"y"}>]>} : (tensor<8xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %0, %1, %2 : tensor<7xf32>, tensor<2x4xf32>, tensor<4xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}], unreduced={"y"}>}) -> (tensor<7xf32>, tensor<2x4xf32>, tensor<4xf32>) {
  %0 = stablehlo.slice %a [0:7] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<7xf32>
  %1 = stablehlo.reshape %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8xf32>) -> tensor<2x4xf32>
  %2 = stablehlo.slice %b [2:6] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}], unreduced={"y"}>]>} : (tensor<8xf32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<7xf32>, tensor<2x4xf32>, tensor<4xf32>
}
