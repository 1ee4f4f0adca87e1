// RUN: sdy_opt %s -split-input-file -sdy-import-pipeline | FileCheck %s
// RUN: sdy_opt %s -split-input-file -sdy-import-pipeline='dedup-functions-fully=true' | FileCheck %s --check-prefix=DEDUP

// What is dead goes, inlined meshes get names, axes of size one leave the shardings, calls take shardings of results,
// constants are split, manual axes are mentioned, data-flow ops get edges. Constraints and groups wait for the call graph,
// unless the call graph stays.
// CHECK: sdy.mesh @mesh = <["a"=2, "one"=1, "b"=2]> {stablehlo.mesh = {axes = [{name = "a", size = 2 : i64}, {name = "one", size = 1 : i64}, {name = "b", size = 2 : i64}]}}
// CHECK: sdy.mesh @mesh_0 = <["z"=4]> {stablehlo.mesh = {axes = [{name = "z", size = 4 : i64}]}}
sdy.mesh @mesh = <["a"=2, "one"=1, "b"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh_0, [{?}, {"z"}]>}) -> tensor<8x8xf32>
// CHECK-NEXT: %0 = sdy.constant dense<1.000000e+00>
// CHECK-NEXT: %1 = sdy.constant dense<1.000000e+00>
// CHECK-NEXT: %2 = stablehlo.add %arg0, %0
// CHECK-NEXT: sdy.sharding_group %2 group_id=5
// CHECK-NEXT: sdy.sharding_group %arg0 group_id=3
// CHECK-NEXT: sdy.sharding_group %2 group_id=3
// CHECK-NEXT: %3 = call @callee(%2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}, {}]>]>}
// CHECK-NEXT: %4 = stablehlo.multiply %3, %1
// CHECK-NEXT: %5 = sdy.sharding_constraint %4 <@mesh, [{"b"}, {}]>
// CHECK-NEXT: %6 = sdy.manual_computation(%5) in_shardings=[<@mesh, [{"a"}, {}], replicated={"one", "b"}>] out_shardings=[<@mesh, [{"a"}, {}], replicated={"one", "b"}>] manual_axes={"a", "one", "b"} (%arg2: tensor<4x8xf32>) {
// CHECK-NEXT: %8 = sdy.data_flow_edge %arg2 sharding=<@mesh, [{}, {}]>
// CHECK-NEXT: sdy.return %8
// CHECK-NEXT: }
// CHECK-NEXT: %7 = sdy.data_flow_edge %6 sharding=<@mesh, [{"a"}, {}], replicated={"one", "b"}>
// CHECK-NEXT: return %7
// DEDUP-LABEL: func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh_0, [{?}, {"z"}]>}) -> tensor<8x8xf32>
// DEDUP-NEXT: %0 = sdy.constant dense<1.000000e+00>
// DEDUP-NEXT: %1 = sdy.constant dense<1.000000e+00>
// DEDUP-NEXT: %2 = stablehlo.add %arg0, %0
// DEDUP-NEXT: sdy.sharding_group %2 group_id=0
// DEDUP-NEXT: sdy.sharding_group %arg0 group_id=0
// DEDUP-NEXT: %3 = call @callee(%2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}, {}]>]>}
// DEDUP-NEXT: %4 = stablehlo.multiply %3, %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}, {}]>]>}
// DEDUP-NEXT: %5 = sdy.sharding_constraint %4 <@mesh, [{"b"}, {}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>}
// DEDUP-NEXT: %6 = sdy.manual_computation(%5) in_shardings=[<@mesh, [{"a"}, {}], replicated={"one", "b"}>] out_shardings=[<@mesh, [{"a"}, {}], replicated={"one", "b"}>] manual_axes={"a", "one", "b"} (%arg2: tensor<4x8xf32>) {
// DEDUP-NEXT: %8 = sdy.data_flow_edge %arg2 sharding=<@mesh, [{}, {}]>
// DEDUP-NEXT: sdy.return %8
// DEDUP-NEXT: }
// DEDUP-NEXT: %7 = sdy.data_flow_edge %6 sharding=<@mesh, [{"a"}, {}], replicated={"one", "b"}>
// DEDUP-NEXT: return %7
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "one"}, {}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["z"=4]>, [{?}, {"z"}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.constant dense<1.0> : tensor<8x8xf32>
  %1 = stablehlo.add %arg0, %0 : tensor<8x8xf32>
  sdy.sharding_group %1 group_id=5 : tensor<8x8xf32>
  sdy.sharding_group %arg0 group_id=3 : tensor<8x8xf32>
  sdy.sharding_group %1 group_id=3 : tensor<8x8xf32>
  %2 = call @callee(%1) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = stablehlo.multiply %2, %0 : tensor<8x8xf32>
  %4 = sdy.sharding_constraint %3 <@mesh, [{"b"}, {}]> : tensor<8x8xf32>
  %5 = sdy.manual_computation(%4) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"b", "a", "one"} (%arg2: tensor<4x8xf32>) {
    sdy.return %arg2 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %5 : tensor<8x8xf32>
}
// CHECK-LABEL: func.func private @callee(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>})
// CHECK-NEXT: %0 = stablehlo.dot %arg0, %arg0
// CHECK-NEXT: return %0
// DEDUP-LABEL: func.func private @callee(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>})
// DEDUP-NEXT: %0 = stablehlo.dot %arg0, %arg0
// DEDUP-NEXT: return %0
func.func private @callee(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) {
  %0 = stablehlo.dot %arg0, %arg0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
// CHECK-NOT: @dead
func.func private @dead() {
  return
}
