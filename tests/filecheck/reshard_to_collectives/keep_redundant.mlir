// RUN: sdy_opt %s -sdy-reshard-to-collectives='keep-redundant-reshards=true' | FileCheck %s

// A reshard between equivalent shardings stays; others do not.
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2, "d"=2]>
// CHECK-LABEL: func.func @kept(
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{"a"}, {}]>
// CHECK-NEXT: %1 = sdy.reshard %arg1 <@mesh, [{}, {}]>
// CHECK-NEXT: %2 = sdy.all_gather [{"a"}, {}] %0 out_sharding=<@mesh, [{}, {}]>
// CHECK-NEXT: return %0, %1, %2
func.func @kept(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {}]>}, %arg1: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}]>}) -> (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) {
  %0 = sdy.reshard %arg0 <@mesh, [{"a"}, {}]> : tensor<16x16xf32>
  %1 = sdy.reshard %arg1 <@mesh, [{}, {}]> : tensor<16x16xf32>
  %2 = sdy.reshard %0 <@mesh, [{}, {}]> : tensor<16x16xf32>
  return %0, %1, %2 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>
}
