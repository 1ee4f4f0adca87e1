// RUN: sdy_opt %s -sdy-export-pipeline | FileCheck %s
// RUN: sdy_opt %s -sdy-export-pipeline='avoid-export-for-partitioning=true' | FileCheck %s --check-prefix=AGAIN
// RUN: sdy_opt %s -sdy-export-pipeline='keep-sharding-rules=true inline-meshes=false update-non-divisible-input-output-shardings=false' | FileCheck %s --check-prefix=PARTS

// NEWER: the export pipeline had other passes in another order, and fewer options
// Edges sink, groups go, constraints become reshards, what does not divide is cut, shardings close, rules and meshes go.
// A module that is to be propagated again only has its shardings closed; the last steps can be left out one by one.
// CHECK: module {
// CHECK-NEXT: func.func @main(%arg0: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<mesh<["a"=2, "b"=4]>, [{"a"}, {"b"}]>}, %arg1: tensor<32x6xf32> {sdy.sharding = #sdy.sharding<mesh<["a"=2, "b"=4]>, [{"a"}, {}]>}) -> (tensor<16x6xf32> {sdy.sharding = #sdy.sharding<mesh<["a"=2, "b"=4]>, [{}, {"b":(1)2}]>}) {
// CHECK-NEXT: %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<mesh<["a"=2, "b"=4]>, [{"a"}, {}]>]>}
// CHECK-NEXT: %1 = sdy.reshard %0 <mesh<["a"=2, "b"=4]>, [{"a"}, {}]>
// CHECK-NEXT: %2 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<mesh<["a"=2, "b"=4]>, [{"a"}, {}]>]>} %1
// CHECK-NEXT: return %2
// CHECK-NEXT: }
// CHECK-NEXT: }
// AGAIN: module {
// AGAIN-NEXT: sdy.mesh @m = <["a"=2, "b"=4]>
// AGAIN-NEXT: func.func @main(%arg0: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {"b"}]>}, %arg1: tensor<32x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}) -> (tensor<16x6xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"b":(1)2}]>}) {
// AGAIN-NEXT: %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a"}, {}]>]>}
// AGAIN-NEXT: sdy.sharding_group %0 group_id=0
// AGAIN-NEXT: %1 = sdy.sharding_constraint %0 <@m, [{"a"}, {}]>
// AGAIN-NEXT: %2 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a"}, {}]>]>} %1
// AGAIN-NEXT: return %2
// AGAIN-NEXT: }
// AGAIN-NEXT: }
// PARTS: module {
// PARTS-NEXT: sdy.mesh @m = <["a"=2, "b"=4]>
// PARTS-NEXT: func.func @main(%arg0: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {"b"}]>}, %arg1: tensor<32x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}) -> (tensor<16x6xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"b"}]>}) {
// PARTS-NEXT: %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a"}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=16, j=6, k=32} reduction={k}>}
// PARTS-NEXT: %1 = sdy.reshard %0 <@m, [{"a"}, {}]>
// PARTS-NEXT: %2 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a"}, {}]>]>} %1
// PARTS-NEXT: return %2
// PARTS-NEXT: }
// PARTS-NEXT: }
sdy.mesh @m = <["a"=2, "b"=4]>
func.func @main(%arg0: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@m, [{"a", ?}, {"b"}]>}, %arg1: tensor<32x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}) -> (tensor<16x6xf32> {sdy.sharding = #sdy.sharding<@m, [{?}, {"b"}]>}) {
  %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=16, j=6, k=32} reduction={k}>} : (tensor<16x32xf32>, tensor<32x6xf32>) -> tensor<16x6xf32>
  sdy.sharding_group %0 group_id=0 : tensor<16x6xf32>
  %1 = sdy.sharding_constraint %0 <@m, [{"a", ?}, {}]> : tensor<16x6xf32>
  %2 = stablehlo.optimization_barrier %1 : tensor<16x6xf32>
  %3 = sdy.data_flow_edge %2 sharding=<@m, [{"a", ?}, {?}]> {sdy.sharding_origins = {a = "constraint_0"}} : tensor<16x6xf32>
  return %3 : tensor<16x6xf32>
}
