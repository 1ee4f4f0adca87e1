// RUN: sdy_opt %s -split-input-file -sdy-lift-inlined-meshes | FileCheck %s

// New meshes stand behind the last one that stays, in the order in which shardings need them; a twin goes and its users
// take the first of its kind. One counter numbers all names that are taken.
// CHECK: sdy.mesh @grid = <["r"=2, "c"=4]> {stablehlo.mesh = {axes = [{name = "r", size = 2 : i64}, {name = "c", size = 4 : i64}]}}
// CHECK: sdy.mesh @mesh_0 = <["z"=8]> {stablehlo.mesh = {axes = [{name = "z", size = 8 : i64}]}}
// CHECK: sdy.mesh @mesh = <["u"=2]> {stablehlo.mesh = {axes = [{name = "u", size = 2 : i64}]}}
// CHECK: sdy.mesh @mesh_1 = <["v"=2, "w"=2]> {stablehlo.mesh = {axes = [{name = "v", size = 2 : i64}, {name = "w", size = 2 : i64}]}}
// CHECK: sdy.mesh @maximal_mesh_6 = <[], device_ids=[6]> {stablehlo.mesh = {axes = [], device_ids = dense<6> : tensor<1xi64>}}
sdy.mesh @grid = <["r"=2, "c"=4]>
sdy.mesh @mesh_0 = <["z"=8]>
sdy.mesh @twin = <["r"=2, "c"=4]>
// CHECK-LABEL: func.func @shardings(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"u"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh_1, [{"v"}, {?}p1], replicated={"w"}>})
// CHECK-NEXT: %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{"r"}, {}]>]>}
// CHECK-NEXT: %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@maximal_mesh_6, []>]>}
// CHECK-NEXT: %2 = sdy.sharding_constraint %1 <@grid, [{}, {"c"}], unreduced={"r"}>
// CHECK-NEXT: return %2
func.func @shardings(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["u"=2]>, [{"u"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["v"=2, "w"=2]>, [{"v"}, {?}p1], replicated={"w"}>}) {
  %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@twin, [{"r"}, {}]>]>} : tensor<8x8xf32>
  %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<mesh<[], device_ids=[6]>, []>]>} : tensor<8x8xf32>
  %2 = sdy.sharding_constraint %1 <mesh<["r"=2, "c"=4]>, [{}, {"c"}], unreduced={"r"}> : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// CHECK: sdy.mesh @mesh = <["a"=2]> {stablehlo.mesh = {axes = [{name = "a", size = 2 : i64}]}}
// CHECK: sdy.mesh @mesh_0 = <["a"=2], device_ids=[1, 0]> {stablehlo.mesh = {axes = [{name = "a", size = 2 : i64}], device_ids = dense<[1, 0]> : tensor<2xi64>}}
// CHECK: sdy.mesh @empty_mesh = <[]> {stablehlo.mesh = {axes = []}}
// CHECK: sdy.mesh @maximal_mesh_0 = <[], device_ids=[0]> {stablehlo.mesh = {axes = [], device_ids = dense<0> : tensor<1xi64>}}
sdy.mesh @mesh = <["a"=2]>

// Order of devices tells meshes apart. A mesh without axes is the placeholder, or that of one device.
// CHECK-LABEL: func.func @kinds(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh_0, [{"a"}]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@empty_mesh, [{}]>}, %arg2: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32>
// CHECK-NEXT: %0 = stablehlo.custom_call @foo(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@maximal_mesh_0, []>]>}
// CHECK-NEXT: stablehlo.custom_call @bar(%arg0) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@maximal_mesh_0, []>]>}
// CHECK-NEXT: return %0
func.func @kinds(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["a"=2], device_ids=[1, 0]>, [{"a"}]>},
                 %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<[]>, [{}]>},
                 %arg2: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["a"=2], device_ids=[0, 1]>, [{"a"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @foo(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<mesh<[], device_ids=[0]>, []>]>} : (tensor<8xf32>) -> tensor<8xf32>
  stablehlo.custom_call @bar(%arg0) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<mesh<[], device_ids=[0]>, []>]>} : (tensor<8xf32>) -> ()
  return %0 : tensor<8xf32>
}

// -----

// Without a mesh the new ones start the module.
// CHECK: module {
// CHECK-NEXT: sdy.mesh @mesh = <["x"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 2 : i64}]}}
// CHECK-NEXT: sdy.mesh @mesh_0 = <["y"=2]> {stablehlo.mesh = {axes = [{name = "y", size = 2 : i64}]}}
// CHECK-LABEL: func.func @holders(
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg2: tensor<4xf32>) {
// CHECK-NEXT: sdy.return %arg2
// CHECK-NEXT: }
// CHECK-NEXT: %1 = sdy.named_computation<"foo">(%0) in_shardings=[<@mesh_0, [{"y"}]>] out_shardings=[<@mesh, [{}]>] (%arg2: tensor<8xf32>) {
// CHECK-NEXT: %6 = stablehlo.sine %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh_0, [{?}]>]>}
// CHECK-NEXT: sdy.return %6
// CHECK-NEXT: }
// CHECK-NEXT: %2:2 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<@mesh_0, [{"y"}]>, <@mesh, []>]>} %1, %arg1
// CHECK-NEXT: %3 = sdy.reshard %2#0 <@mesh_0, [{}]>
// CHECK-NEXT: %4 = sdy.all_slice [{"y"}] %3 out_sharding=<@mesh_0, [{"y"}]>
// CHECK-NEXT: %5 = sdy.data_flow_edge %2#1 sharding=<@mesh, []>
// CHECK-NEXT: return %4
func.func @holders(%arg0: tensor<8xf32>, %arg1: tensor<i32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%arg0) in_shardings=[<mesh<["x"=2]>, [{"x"}]>] out_shardings=[<mesh<["x"=2]>, [{"x"}]>] manual_axes={"x"} (%arg2: tensor<4xf32>) {
    sdy.return %arg2 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %1 = sdy.named_computation<"foo">(%0) in_shardings=[<mesh<["y"=2]>, [{"y"}]>] out_shardings=[<mesh<["x"=2]>, [{}]>] (%arg2: tensor<8xf32>) {
    %2 = stablehlo.sine %arg2 {sdy.sharding = #sdy.sharding_per_value<[<mesh<["y"=2]>, [{?}]>]>} : tensor<8xf32>
    sdy.return %2 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %2:2 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<mesh<["y"=2]>, [{"y"}]>, <mesh<["x"=2]>, []>]>} %1, %arg1 : tensor<8xf32>, tensor<i32>
  %3 = sdy.reshard %2#0 <mesh<["y"=2]>, [{}]> : tensor<8xf32>
  %4 = sdy.all_slice [{"y"}] %3 out_sharding=<mesh<["y"=2]>, [{"y"}]> : tensor<8xf32>
  %5 = sdy.data_flow_edge %2#1 sharding=<mesh<["x"=2]>, []> : tensor<i32>
  return %4 : tensor<8xf32>
}

// -----

// What is there already stays, right or wrong, and decides nothing; names may need quotes.
// CHECK: sdy.mesh @"my mesh" = <["axis \22x\22"=2]> {stablehlo.mesh = {axes = [{name = "axis \22x\22", size = 2 : i64}]}}
sdy.mesh @"my mesh" = <["axis \"x\""=2]>
// CHECK-NEXT: sdy.mesh @other = <["x"=2]> {stablehlo.mesh = "wrong"}
sdy.mesh @other = <["x"=2]> {stablehlo.mesh = "wrong"}
// CHECK-NEXT: sdy.mesh @ids = <["x"=2], device_ids=[1, 0]> {stablehlo.mesh = {axes = [{name = "x", size = 2 : i64}], device_ids = dense<[1, 0]> : tensor<2xi64>}}
sdy.mesh @ids = <["x"=2], device_ids=[1, 0]>
// CHECK-NEXT: sdy.mesh @one = <[], device_ids=[3]> {stablehlo.mesh = {axes = [], device_ids = dense<3> : tensor<1xi64>}}
sdy.mesh @one = <[], device_ids=[3]>
// CHECK-NOT: @"twin \22"
sdy.mesh @"twin \"" = <["axis \"x\""=2]>
// CHECK-LABEL: func.func @quoted(%arg0: tensor<8xf32>, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@"my mesh", [{"axis \22x\22"}]>}) -> tensor<8xf32>
// CHECK-NEXT: %0 = sdy.sharding_constraint %arg0 <@"my mesh", [{"axis \22x\22"}]>
// CHECK-NEXT: return %0
func.func @quoted(%arg0: tensor<8xf32>, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@"twin \"", [{"axis \"x\""}]>}) -> tensor<8xf32> {
  %0 = sdy.sharding_constraint %arg0 <mesh<["axis \"x\""=2]>, [{"axis \"x\""}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
