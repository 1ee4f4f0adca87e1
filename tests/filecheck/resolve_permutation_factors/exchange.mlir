// RUN: sdy_opt %s -split-input-file -sdy-resolve-permutation-factors | FileCheck %s

// NEWER: the pass did something else
// A pad gets the last elements of the shard before.
sdy.mesh @mesh = <["x"=2, "y"=4]>
// CHECK-LABEL: func.func @pad(
// CHECK: sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"y"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} (%arg2: tensor<4xf32>, %arg3: tensor<f32>)
// CHECK: stablehlo.partition_id
// CHECK: "stablehlo.collective_permute"(%arg2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<{{\[}}[0, 1], [1, 2], [2, 3], [4, 5], [5, 6], [6, 7]]>
// CHECK: stablehlo.compare GE
// CHECK: stablehlo.select
// CHECK: stablehlo.concatenate {{.*}} -> tensor<8xf32>
// CHECK: stablehlo.pad {{.*}} low = [5], high = [5], interior = [0]
// CHECK: stablehlo.dynamic_slice {{.*}} sizes = [5]
// CHECK: sdy.return
func.func @pad(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}, %p: tensor<f32>) -> tensor<20xf32> {
  %0 = stablehlo.pad %a, %p, low = [3], high = [1], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : (tensor<16xf32>, tensor<f32>) -> tensor<20xf32>
  return %0 : tensor<20xf32>
}

// -----

// NEWER: the pass did something else
// A slice, on devices in another order: the place of a device comes from a table.
sdy.mesh @mesh = <["x"=4], device_ids=[3, 2, 1, 0]>
// CHECK-LABEL: func.func @slice(
// CHECK: sdy.manual_computation
// CHECK: stablehlo.constant dense<[3, 2, 1, 0]> : tensor<4xi32>
// CHECK: source_target_pairs = dense<{{\[}}[2, 3], [1, 2], [0, 1]]>
// CHECK: stablehlo.compare LT
// CHECK: stablehlo.slice {{.*}} [0:11]
func.func @slice(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<11xf32> {
  %0 = stablehlo.slice %a [3:14] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<16xf32>) -> tensor<11xf32>
  return %0 : tensor<11xf32>
}

// -----

// NEWER: the pass did something else
// DIFFERS: the reference leaves the stride out; a slice of whole shards stays.
sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @strided(
// CHECK-NEXT: stablehlo.slice %arg0 [0:16:2]
// CHECK: sdy.manual_computation
// CHECK: stablehlo.dynamic_slice {{.*}} sizes = [7]
// CHECK-NEXT: stablehlo.slice {{.*}} [0:7:3] {{.*}} -> tensor<3xf32>
func.func @strided(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32>, tensor<6xf32>) {
  %0 = stablehlo.slice %a [0:16:2] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<16xf32>) -> tensor<8xf32>
  %1 = stablehlo.slice %a [0:16:3] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<16xf32>) -> tensor<6xf32>
  return %0, %1 : tensor<8xf32>, tensor<6xf32>
}

// -----

// NEWER: the pass did something else
// A split finds its elements by a table.
sdy.mesh @mesh = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @split(
// CHECK: sdy.manual_computation
// CHECK: dense<[8, 8, 7, 7]> : tensor<4xi32>
// CHECK: stablehlo.reshape {{.*}} : (tensor<4xf32>) -> tensor<1x4xf32>
func.func @split(%a: tensor<14xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}) -> tensor<2x7xf32> {
  %0 = stablehlo.reshape %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : (tensor<14xf32>) -> tensor<2x7xf32>
  return %0 : tensor<2x7xf32>
}

// -----

// NEWER: the pass did something else
// What is reversed stays where it is, on a mesh in reversed order.
sdy.mesh @mesh = <["x"=2, "y"=4]>
// CHECK: sdy.mesh @mesh_reversed = <["x"=2, "y"=4], device_ids=[3, 2, 1, 0, 7, 6, 5, 4]>
// CHECK-LABEL: func.func @reverse(
// CHECK: %[[R:.*]] = stablehlo.reverse {{.*}}<@mesh_reversed, [{"y"}]>
// CHECK-NEXT: %[[S:.*]] = sdy.reshard %[[R]] <@mesh, [{"y"}]>
// CHECK-NEXT: stablehlo.slice %[[S]] [0:18]
func.func @reverse(%a: tensor<18xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) -> tensor<18xf32> {
  %0 = stablehlo.reverse %a, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : tensor<18xf32>
  return %0 : tensor<18xf32>
}

// -----

// NEWER: the pass did something else
// The trimmed result is sharded as the operand, which may be open where the result is closed.
sdy.mesh @mesh = <["x"=2, "y"=4]>
// CHECK-LABEL: func.func @open_reverse(
// CHECK: %[[R:.*]] = stablehlo.reverse {{.*}}<@mesh_reversed, [{"y"}, {}]>
// CHECK-NEXT: %[[S:.*]] = sdy.reshard %[[R]] <@mesh, [{"y", ?}, {?}]>
// CHECK-NEXT: stablehlo.slice %[[S]] [0:18, 0:2] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>}
func.func @open_reverse(%a: tensor<18x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> tensor<18x2xf32> {
  %0 = stablehlo.reverse %a, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y", ?}, {?}]>]>} : tensor<18x2xf32>
  return %0 : tensor<18x2xf32>
}

// -----

// NEWER: the pass did something else
// DIFFERS: in the reference, what is trimmed claims the axes of the operand although it has been resharded
sdy.mesh @mesh = <["x"=2, "y"=4]>
// CHECK-LABEL: func.func @moved_reverse(
// CHECK: %[[S:.*]] = sdy.reshard {{.*}} <@mesh, [{"x"}]>
// CHECK-NEXT: stablehlo.slice %[[S]] [0:18] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
func.func @moved_reverse(%a: tensor<18xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) -> tensor<18xf32> {
  %0 = stablehlo.reverse %a, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<18xf32>
  return %0 : tensor<18xf32>
}

// -----

// NEWER: the pass did something else
// DIFFERS: the reference makes a reshard without a sharding, which its verifier refuses
sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @reverse_without_sharding(
// CHECK: %[[R:.*]] = stablehlo.reverse {{.*}}<@mesh_reversed, [{"x"}]>
// CHECK-NEXT: sdy.reshard %[[R]] <@mesh, [{}]>
func.func @reverse_without_sharding(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.reverse %a, dims = [0] : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// NEWER: the pass did something else
// DIFFERS: the reference leaves the stride out: its offset is that of a slice without one.
// Of one element per shard there is none to leave out.
sdy.mesh @mesh = <["x"=4]>
// CHECK-LABEL: func.func @strided_to_one(
// CHECK: stablehlo.constant dense<-2> : tensor<i32>
// CHECK: %[[D:.*]] = stablehlo.dynamic_slice {{.*}} sizes = [1]
// CHECK-NEXT: sdy.return %[[D]]
func.func @strided_to_one(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
  %0 = stablehlo.slice %a [0:8:2] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<16xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
