// RUN: sdy_opt %s -sdy-per-instruction-partitioning="enable-halo-exchange=false" | FileCheck %s

// NEWER: there was no such pass
// CHECK: sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<6xf32> {
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<4xf32>) {
// CHECK-NEXT: %1 = "stablehlo.all_gather"(%arg1) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>, use_global_device_ids}> : (tensor<4xf32>) -> tensor<8xf32>
// CHECK-NEXT: %2 = stablehlo.slice %1 [2:8] : (tensor<8xf32>) -> tensor<6xf32>
// CHECK-NEXT: %3 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c = stablehlo.constant dense<[0, 3]> : tensor<2xi32>
// CHECK-NEXT: %4 = stablehlo.dynamic_slice %c, %3, sizes = [1] : (tensor<2xi32>, tensor<ui32>) -> tensor<1xi32>
// CHECK-NEXT: %5 = stablehlo.reshape %4 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %6 = stablehlo.dynamic_slice %2, %5, sizes = [3] : (tensor<6xf32>, tensor<i32>) -> tensor<3xf32>
// CHECK-NEXT: sdy.return %6 : tensor<3xf32>
// CHECK-NEXT: } : (tensor<8xf32>) -> tensor<6xf32>
// CHECK-NEXT: return %0 : tensor<6xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<6xf32> {
  %0 = stablehlo.slice %arg0 [2:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}
