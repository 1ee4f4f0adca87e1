// RUN: sdy_opt %s -split-input-file -sdy-convert-global-to-local='enable-rgv3=false per-dim-all-gather=true replica-count=4' | FileCheck %s

// NEWER: tables, groups and special treatment are others
// The last dimension is gathered first; devices are replicas, and some collectives then work without a channel.
sdy.mesh @m = <["x"=2, "y"=2]>
// CHECK: module attributes {sdy.output_shardings = #sdy.sharding_per_value<[<mesh<["x"=2, "y"=2]>, [{"x"}, {}]>]>, sdy.parameters_shardings = #sdy.sharding_per_value<[<mesh<["x"=2, "y"=2]>, [{"x"}, {"y"}]>]>}
// CHECK-LABEL: func.func @main(%arg0: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}) -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>})
// CHECK-NEXT: %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1], [2, 3{{\]\]}}> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4x2xf32>) -> tensor<4x4xf32>
// CHECK-NEXT: %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<{{\[\[}}0, 2], [1, 3{{\]\]}}> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: %2 = stablehlo.replica_id : tensor<ui32>
// CHECK-NEXT: %c = stablehlo.constant dense<[0, 4, 0, 4]> : tensor<4xi32>
// CHECK-NEXT: %3 = stablehlo.dynamic_slice %c, %2, sizes = [1] : (tensor<4xi32>, tensor<ui32>) -> tensor<1xi32>
// CHECK-NEXT: %4 = stablehlo.reshape %3 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %5 = stablehlo.dynamic_slice %1, %4, %c_0, sizes = [4, 4] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<4x4xf32>
// CHECK-NEXT: %6 = "stablehlo.collective_permute"(%5) <{source_target_pairs = dense<{{\[\[}}0, 0], [1, 2], [2, 1], [3, 3{{\]\]}}> : tensor<4x2xi64>}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT: %7 = "stablehlo.all_to_all"(%6) <{concat_dimension = 0 : i64, replica_groups = dense<{{\[\[}}0, 2], [1, 3{{\]\]}}> : tensor<2x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<4x4xf32>) -> tensor<8x2xf32>
// CHECK-NEXT: return %6 : tensor<4x4xf32>
func.func @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) {
  %0 = sdy.all_gather [{"x"}, {"y"}] %arg0 out_sharding=<@m, [{}, {}]> : tensor<8x4xf32>
  %1 = sdy.all_slice [{"y"}, {}] %0 out_sharding=<@m, [{"y"}, {}]> : tensor<8x4xf32>
  %2 = sdy.collective_permute %1 out_sharding=<@m, [{"x"}, {}]> : tensor<8x4xf32>
  %3 = sdy.all_to_all [{"x"}: 0->1] %2 out_sharding=<@m, [{}, {"x"}]> : tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}
