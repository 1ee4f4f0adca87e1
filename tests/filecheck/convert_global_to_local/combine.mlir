// RUN: sdy_opt %s -split-input-file -sdy-convert-global-to-local='enable-rgv3=false combine-multi-dimension-reduce-scatter=true' | FileCheck %s

// NEWER: tables, groups and special treatment are others
// All dimensions are scattered as one.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @all(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}], unreduced={"x", "y"}>}) -> (tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>})
// CHECK-NEXT: %0 = stablehlo.reshape %arg0 : (tensor<8x4xf32>) -> tensor<2x4x2x2xf32>
// CHECK-NEXT: %1 = stablehlo.transpose %0, dims = [0, 2, 1, 3] : (tensor<2x4x2x2xf32>) -> tensor<2x2x4x2xf32>
// CHECK-NEXT: %2 = stablehlo.reshape %1 : (tensor<2x2x4x2xf32>) -> tensor<4x4x2xf32>
// CHECK-NEXT: %3 = "stablehlo.reduce_scatter"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1, 2, 3{{\]\]}}> : tensor<1x4xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT: %5 = stablehlo.add %arg1, %arg2 : tensor<f32>
// CHECK-NEXT: stablehlo.return %5 : tensor<f32>
// CHECK-NEXT: }) : (tensor<4x4x2xf32>) -> tensor<1x4x2xf32>
// CHECK-NEXT: %4 = stablehlo.reshape %3 : (tensor<1x4x2xf32>) -> tensor<4x2xf32>
// CHECK-NEXT: return %4 : tensor<4x2xf32>
func.func @all(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}], unreduced={"x", "y"}>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}) {
  %0 = sdy.reduce_scatter [{"x"}, {"y"}] %arg0 out_sharding=<@m, [{"x"}, {"y"}]> : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// Other dimensions stay where they are.
// DIFFERS: the reference refuses a dimension in between that is not scattered
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @some(%arg0: tensor<8x3x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}, {}], unreduced={"x", "y"}>}) -> (tensor<4x3x2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}, {"y"}]>})
// CHECK-NEXT: %0 = stablehlo.reshape %arg0 : (tensor<8x3x4xf32>) -> tensor<2x4x3x2x2xf32>
// CHECK-NEXT: %1 = stablehlo.transpose %0, dims = [0, 3, 1, 2, 4] : (tensor<2x4x3x2x2xf32>) -> tensor<2x2x4x3x2xf32>
// CHECK-NEXT: %2 = stablehlo.reshape %1 : (tensor<2x2x4x3x2xf32>) -> tensor<4x4x3x2xf32>
// CHECK-NEXT: %3 = "stablehlo.reduce_scatter"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1, 2, 3{{\]\]}}> : tensor<1x4xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT: %5 = stablehlo.add %arg1, %arg2 : tensor<f32>
// CHECK-NEXT: stablehlo.return %5 : tensor<f32>
// CHECK-NEXT: }) : (tensor<4x4x3x2xf32>) -> tensor<1x4x3x2xf32>
// CHECK-NEXT: %4 = stablehlo.reshape %3 : (tensor<1x4x3x2xf32>) -> tensor<4x3x2xf32>
// CHECK-NEXT: return %4 : tensor<4x3x2xf32>
func.func @some(%arg0: tensor<8x3x4xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}, {}], unreduced={"x", "y"}>}) -> (tensor<8x3x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}, {"y"}]>}) {
  %0 = sdy.reduce_scatter [{"x"}, {}, {"y"}] %arg0 out_sharding=<@m, [{"x"}, {}, {"y"}]> : tensor<8x3x4xf32>
  return %0 : tensor<8x3x4xf32>
}
