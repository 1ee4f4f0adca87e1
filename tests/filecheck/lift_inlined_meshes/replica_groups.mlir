// RUN: sdy_opt %s -split-input-file -sdy-lift-inlined-meshes | FileCheck %s

// The mesh inside replica groups gets a symbol of its own, even if an equal one exists.
// CHECK: sdy.mesh @mesh = <["r"=2, "c"=4]> {stablehlo.mesh = {axes = [{name = "r", size = 2 : i64}, {name = "c", size = 4 : i64}]}}
// CHECK: sdy.mesh @mesh_0 = <["r"=2, "c"=4]> {stablehlo.mesh = {axes = [{name = "r", size = 2 : i64}, {name = "c", size = 4 : i64}]}}
sdy.mesh @mesh = <["r"=2, "c"=4]>
// CHECK-LABEL: func.func @own_mesh(
// CHECK-NEXT: %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 1 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh_0, axes = [#stablehlo.axis_ref<name = "r">]>}>
// CHECK-NEXT: %1 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 1 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh_0, axes = [#stablehlo.axis_ref<name = "r">]>}>
// CHECK-NEXT: return %0, %1
func.func @own_mesh(%arg0: tensor<8x8xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 1 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "r", size = 2>, #stablehlo.mesh_axis<name = "c", size = 4>]>, axes = [#stablehlo.axis_ref<name = "r">]>}> : (tensor<8x8xf32>) -> tensor<8x16xf32>
  %1 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 1 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "r", size = 2>, #stablehlo.mesh_axis<name = "c", size = 4>]>, axes = [#stablehlo.axis_ref<name = "r">]>}> : (tensor<8x8xf32>) -> tensor<8x16xf32>
  return %0, %1 : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// A symbol of a twin is replaced; lists of devices stay.
// CHECK: sdy.mesh @first = <["x"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 2 : i64}]}}
sdy.mesh @first = <["x"=2]>
sdy.mesh @second = <["x"=2]>
// CHECK-LABEL: func.func @twin(
// CHECK-NEXT: %0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @first, axes = [#stablehlo.axis_ref<name = "x">]>}> ({
// CHECK-NEXT: ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT: %5 = stablehlo.add %arg1, %arg2
// CHECK-NEXT: stablehlo.return %5
// CHECK-NEXT: })
// CHECK-NEXT: %1 = "stablehlo.collective_broadcast"(%0) <{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @first, axes = [#stablehlo.axis_ref<name = "x">]>}>
// CHECK-NEXT: %2 = "stablehlo.reduce_scatter"(%1) <{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @first, axes = [#stablehlo.axis_ref<name = "x">]>, scatter_dimension = 0 : i64}> ({
// CHECK-NEXT: ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT: %5 = stablehlo.add %arg1, %arg2
// CHECK-NEXT: stablehlo.return %5
// CHECK-NEXT: })
// CHECK-NEXT: %3 = "stablehlo.all_to_all"(%1) <{concat_dimension = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @first, axes = [#stablehlo.axis_ref<name = "x">]>, split_count = 2 : i64, split_dimension = 0 : i64}>
// CHECK-NEXT: %4 = "stablehlo.all_reduce"(%3) <{replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>}> ({
// CHECK-NEXT: ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT: %5 = stablehlo.add %arg1, %arg2
// CHECK-NEXT: stablehlo.return %5
// CHECK-NEXT: })
// CHECK-NEXT: return %0, %1, %2, %3, %4
func.func @twin(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @second, axes = [#stablehlo.axis_ref<name = "x">]>}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %5 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %5 : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "stablehlo.collective_broadcast"(%0) <{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @second, axes = [#stablehlo.axis_ref<name = "x">]>}> : (tensor<8xf32>) -> tensor<8xf32>
  %2 = "stablehlo.reduce_scatter"(%1) <{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @second, axes = [#stablehlo.axis_ref<name = "x">]>, scatter_dimension = 0 : i64}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %5 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %5 : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<4xf32>
  %3 = "stablehlo.all_to_all"(%1) <{concat_dimension = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @first, axes = [#stablehlo.axis_ref<name = "x">]>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<8xf32>) -> tensor<8xf32>
  %4 = "stablehlo.all_reduce"(%3) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %5 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %5 : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %1, %2, %3, %4 : tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// NEWER: before, the ops were visited kind by kind instead of in program order, which numbers the new meshes differently.
// CHECK: sdy.mesh @mesh = <["x"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 2 : i64}]}}
// CHECK: sdy.mesh @mesh_0 = <["y"=4]> {stablehlo.mesh = {axes = [{name = "y", size = 4 : i64}]}}
// CHECK-LABEL: func.func @order(
// CHECK-NEXT: %0 = "stablehlo.collective_broadcast"(%arg0) <{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>}>
// CHECK-NEXT: %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh_0, axes = [#stablehlo.axis_ref<name = "y">]>}>
// CHECK-NEXT: return %1
func.func @order(%arg0: tensor<8xf32>) -> tensor<32xf32> {
  %0 = "stablehlo.collective_broadcast"(%arg0) <{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>]>, axes = [#stablehlo.axis_ref<name = "x">]>}> : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "y", size = 4>]>, axes = [#stablehlo.axis_ref<name = "y">]>}> : (tensor<8xf32>) -> tensor<32xf32>
  return %1 : tensor<32xf32>
}

// -----

// The order of the devices stays: without it, other devices would work together.
// DIFFERS: the reference drops the device ids
// CHECK: sdy.mesh @mesh = <["x"=2, "y"=2], device_ids=[3, 0, 1, 2]> {stablehlo.mesh = {axes = [{name = "x", size = 2 : i64}, {name = "y", size = 2 : i64}], device_ids = dense<[3, 0, 1, 2]> : tensor<4xi64>}}
// CHECK: sdy.mesh @mesh_0 = <["x"=2, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 2 : i64}, {name = "y", size = 2 : i64}]}}
// CHECK-LABEL: func.func @ordered_devices(
// CHECK-NEXT: %0 = "stablehlo.collective_broadcast"(%arg0) <{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "y">]>}>
// CHECK-NEXT: %1 = "stablehlo.collective_broadcast"(%0) <{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh_0, axes = [#stablehlo.axis_ref<name = "y">]>}>
// CHECK-NEXT: return %1
func.func @ordered_devices(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.collective_broadcast"(%arg0) <{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>, #stablehlo.mesh_axis<name = "y", size = 2>], device_ids = dense<[3, 0, 1, 2]> : tensor<4xi64>>, axes = [#stablehlo.axis_ref<name = "y">]>}> : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "stablehlo.collective_broadcast"(%0) <{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>, #stablehlo.mesh_axis<name = "y", size = 2>]>, axes = [#stablehlo.axis_ref<name = "y">]>}> : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
