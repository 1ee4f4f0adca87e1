// RUN: sdy_opt %s -split-input-file -sdy-inline-meshes | FileCheck %s

// Every sharding holds its mesh, and no mesh op is left.
// CHECK-NOT: sdy.mesh
sdy.mesh @mesh = <["a"=2, "b"=4]>
sdy.mesh @ids = <["a"=2], device_ids=[1, 0]> {some.attribute = 1 : i32}
sdy.mesh @device = <[], device_ids=[3]>
sdy.mesh @empty_mesh = <[]>
sdy.mesh @unused = <["z"=2]>
// CHECK-LABEL: func.func @inlined(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["a"=2, "b"=4]>, [{"a", "b":(1)2}, {?}p1], replicated={"b":(2)2}>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["z"=2]>, [{"z"}, {}]>}, %arg2: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["a"=2], device_ids=[1, 0]>, [{"a", ?}, {}]>})
// CHECK-NEXT: %0 = sdy.reshard %arg0 <mesh<["a"=2, "b"=4]>, [{}, {"b"}], unreduced={"a"}>
// CHECK-NEXT: %1 = stablehlo.custom_call @foo(%0) {sdy.sharding = #sdy.sharding_per_value<[<mesh<[], device_ids=[3]>, []>]>}
// CHECK-NEXT: %2 = sdy.manual_computation(%1) in_shardings=[<mesh<["a"=2, "b"=4]>, [{"a"}, {}]>] out_shardings=[<mesh<[]>, [{}, {}]>] manual_axes={"a"} (%arg3: tensor<4x8xf32>) {
// CHECK-NEXT: %4 = stablehlo.concatenate %arg3, %arg3, dim = 0
// CHECK-NEXT: sdy.return %4
// CHECK-NEXT: }
// CHECK-NEXT: %3 = sdy.all_slice [{"a"}, {}] %arg2 out_sharding=<mesh<["a"=2, "b"=4]>, [{"a"}, {}]>
// CHECK-NEXT: return %2
func.func @inlined(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b":(1)2}, {?}p1], replicated={"b":(2)2}>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["z"=2]>, [{"z"}, {}]>}, %arg2: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@ids, [{"a", ?}, {}]>}) {
  %0 = sdy.reshard %arg0 <@mesh, [{}, {"b"}], unreduced={"a"}> : tensor<8x8xf32>
  %1 = stablehlo.custom_call @foo(%0) {sdy.sharding = #sdy.sharding_per_value<[<@device, []>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@empty_mesh, [{}, {}]>] manual_axes={"a"} (%arg3: tensor<4x8xf32>) {
    %4 = stablehlo.concatenate %arg3, %arg3, dim = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    sdy.return %4 : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = sdy.all_slice [{"a"}, {}] %arg2 out_sharding=<@mesh, [{"a"}, {}]> : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// NEWER: before, replica groups kept the symbol, and the module was refused.
// Replica groups that name a mesh hold it too.
// CHECK-NOT: sdy.mesh
sdy.mesh @mesh = <["a"=2, "b"=4]>
sdy.mesh @"quoted name" = <["a"=2], device_ids=[1, 0]>
// CHECK-LABEL: func.func @replica_groups(
// CHECK-NEXT: %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes=[<name = "a", size = 2>, <name = "b", size = 4>]>, axes = [#stablehlo.axis_ref<name = "a">]>}>
// CHECK-NEXT: %1 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes=[<name = "a", size = 2>], device_ids=dense<[1, 0]> : tensor<2xi64>>, axes = [#stablehlo.axis_ref<name = "a">]>}>
// CHECK-NEXT: return %0, %1
func.func @replica_groups(%arg0: tensor<8xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "a">]>}> : (tensor<8xf32>) -> tensor<16xf32>
  %1 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @"quoted name", axes = [#stablehlo.axis_ref<name = "a">]>}> : (tensor<8xf32>) -> tensor<16xf32>
  return %0, %1 : tensor<16xf32>, tensor<16xf32>
}
