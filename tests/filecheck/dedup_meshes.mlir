// RUN: sdy_opt %s -split-input-file -pyshardy-dedup-meshes | FileCheck %s

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

// -----

// The mesh with the most axes stays, whichever is used first. Axes of size 1 do not count.
// CHECK-LABEL: func.func @finer(
// CHECK-SAME: %arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@fine, [{"c", "d"}, {}]>}
// CHECK-NEXT: sdy.sharding_constraint %arg0 <@fine, [{"c"}, {"e"}]>
sdy.mesh @coarse = <["a"=4, "b"=2, "one"=1]>
sdy.mesh @fine = <["c"=2, "d"=2, "e"=2]>
func.func @finer(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@coarse, [{"a"}, {}]>}) -> tensor<8x4xf32> {
  %0 = sdy.sharding_constraint %x <@fine, [{"c"}, {"e"}]> : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
