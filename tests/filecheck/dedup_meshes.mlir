// RUN: sdy_opt %s -pyshardy-dedup-meshes | FileCheck %s

// CHECK: func.func @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x4xf32> {
// CHECK-NEXT: %0 = sdy.sharding_constraint %arg0 <@mesh, [{"a", "b"}, {}]> : tensor<8x4xf32>
// CHECK-NEXT: return %0 : tensor<8x4xf32>
// CHECK-NEXT: }

sdy.mesh @mesh = <["a"=2, "b"=2]>
sdy.mesh @all = <["c"=4]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x4xf32> {
  %0 = sdy.sharding_constraint %x <@all, [{"c"}, {}]> : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
