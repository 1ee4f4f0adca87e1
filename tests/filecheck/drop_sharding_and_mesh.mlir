// RUN: sdy_opt %s -split-input-file -sdy-drop-sharding-and-mesh | FileCheck %s
// RUN: sdy_opt %s -split-input-file -sdy-drop-sharding-and-mesh='keep-module-sharding-metadata=true' | FileCheck %s --check-prefixes=CHECK,KEEP

// NEWER: it had no option, and erased meshes that reshards still need
// Shardings go from ops, arguments and results, and with them the meshes; those that an op needs stay, with their mesh.
// Whatever else refers to a mesh keeps it, but for the module itself.
// CHECK: module attributes {mhlo.note = #sdy.sharding<@noted, [{"a"}]>
// KEEP-SAME: sdy.output_shardings = [#sdy.sharding<@outputs, [{"a"}]>], sdy.parameters_shardings = [#sdy.sharding<@parameters, [{}]>]
// CHECK-SAME: } {
// CHECK-NEXT: sdy.mesh @reshard = <["a"=2]>
// CHECK-NEXT: sdy.mesh @on_arg = <["a"=2]>
// CHECK-NEXT: sdy.mesh @deep = <["a"=2]>
// CHECK-NEXT: sdy.mesh @groups = <["a"=2]>
// CHECK-NEXT: sdy.mesh @manual = <["a"=2]>
// CHECK-NEXT: sdy.mesh @on_func = <["a"=2]>
// CHECK-NEXT: sdy.mesh @symbol = <["a"=2]>
// CHECK-NEXT: func.func @main(%arg0: tensor<8xf32> {mhlo.note = #sdy.sharding<@on_arg, [{"a"}]>}) -> tensor<8xf32> attributes {mhlo.note = #sdy.sharding<@on_func, [{"a"}]>}
module attributes {sdy.output_shardings = [#sdy.sharding<@outputs, [{"a"}]>], sdy.parameters_shardings = [#sdy.sharding<@parameters, [{}]>], mhlo.note = #sdy.sharding<@noted, [{"a"}]>} {
sdy.mesh @outputs = <["a"=2]>
sdy.mesh @parameters = <["a"=2]>
sdy.mesh @noted = <["a"=2]>
sdy.mesh @text = <["a"=2]>
sdy.mesh @declared = <["a"=2]>
sdy.mesh @plain = <["a"=2]>
sdy.mesh @reshard = <["a"=2]>
sdy.mesh @on_arg = <["a"=2]>
sdy.mesh @deep = <["a"=2]>
sdy.mesh @groups = <["a"=2]>
sdy.mesh @manual = <["a"=2]>
sdy.mesh @inside = <["a"=2]>
sdy.mesh @on_func = <["a"=2]>
sdy.mesh @symbol = <["a"=2]>
sdy.mesh @device = <[], device_ids=[0]>
// CHECK-NEXT: %0 = stablehlo.sine %arg0 {note = [{x = #sdy.sharding<@deep, [{"a"}]>}], symbol = @symbol::@other, text = "@text"}
// CHECK-NEXT: %1 = sdy.reshard %0 <@reshard, [{"a"}]>
// CHECK-NEXT: %2 = sdy.manual_computation(%1) in_shardings=[<@manual, [{"a"}]>] out_shardings=[<@manual, [{"a"}]>] manual_axes={"a"} (%arg1: tensor<4xf32>) {
// CHECK-NEXT: %5 = stablehlo.sine %arg1 : tensor<4xf32>
// CHECK-NEXT: sdy.return %5
// CHECK-NEXT: } : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: stablehlo.custom_call @foo(%2) {has_side_effect = true} :
// CHECK-NEXT: %3 = call @declaration(%2) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %4 = "stablehlo.all_gather"(%3) <{{.*}}mesh = @groups
// CHECK-NEXT: return %3
// CHECK: func.func private @declaration(tensor<8xf32>) -> tensor<8xf32>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@plain, [{"a"}]>, mhlo.note = #sdy.sharding<@on_arg, [{"a"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@plain, [{"a"}]>}) attributes {mhlo.note = #sdy.sharding<@on_func, [{"a"}]>} {
  %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@plain, [{"a"}]>]>, note = [{x = #sdy.sharding<@deep, [{"a"}]>}], symbol = @symbol::@other, text = "@text"} : tensor<8xf32>
  %1 = sdy.reshard %0 <@reshard, [{"a"}]> : tensor<8xf32>
  %2 = sdy.manual_computation(%1) in_shardings=[<@manual, [{"a"}]>] out_shardings=[<@manual, [{"a"}]>] manual_axes={"a"} (%arg1: tensor<4xf32>) {
    %5 = stablehlo.sine %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@inside, [{}]>]>} : tensor<4xf32>
    sdy.return %5 : tensor<4xf32>
  } {sdy.sharding = #sdy.sharding_per_value<[<@plain, [{"a"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  stablehlo.custom_call @foo(%2) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@device, []>]>} : (tensor<8xf32>) -> ()
  %3 = call @declaration(%2) {sdy.sharding = #sdy.sharding_per_value<[<@declared, [{}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  %4 = "stablehlo.all_gather"(%3) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @groups, axes = [#stablehlo.axis_ref<name = "a">]>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids}> : (tensor<8xf32>) -> tensor<16xf32>
  return %3 : tensor<8xf32>
}
func.func private @declaration(tensor<8xf32> {sdy.sharding = #sdy.sharding<@declared, [{"a"}]>}) -> tensor<8xf32>
}

// -----

// NEWER: all meshes went
// A mesh that an erased mesh refers to goes if it comes later. Inner modules have meshes of their own.
// CHECK: sdy.mesh @earlier
// CHECK-NEXT: sdy.mesh @itself
// CHECK-NEXT: func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: return %arg0
sdy.mesh @earlier = <["a"=2]>
sdy.mesh @referring = <["a"=2]> {note = [@earlier, @later]}
sdy.mesh @later = <["a"=2]>
sdy.mesh @itself = <["a"=2]> {note = @itself}
sdy.mesh @kept = <["a"=2]>
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
// CHECK: module @inner {
// CHECK-NEXT: sdy.mesh @kept
// CHECK-NEXT: func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@kept, [{"a"}]>
module @inner {
  sdy.mesh @kept = <["a"=2]>
  sdy.mesh @dropped = <["a"=2]>
  func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@dropped, [{}]>}) -> tensor<8xf32> {
    %0 = sdy.reshard %arg0 <@kept, [{"a"}]> : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
