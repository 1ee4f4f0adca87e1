// RUN: sdy_opt %s -sdy-remove-size-one-axes | FileCheck %s
// DIFFERS: the reference leaves two parts of an axis side by side, which its verifier refuses.

sdy.mesh @mesh = <["x"=8, "o"=1, "y"=4, "p"=1]>

// What an axis of size 1 stood between is joined.
// CHECK-LABEL: func.func @between(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}p1, {"y", ?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(2)2, "x":(1)4}, {}]>}, %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(2)2, "y":(1)2, "x":(4)2}, {}]>})
func.func @between(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2, "o", "x":(2)4}p1, {"y":(1)2, "p", "y":(2)2, ?}]>},
                   %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(2)2, "p", "x":(1)2, "o", "x":(2)2}, {}]>},
                   %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(2)2, "o", "y":(1)2, "x":(4)2}, {}]>}) -> tensor<8x8xf32> {
  return %arg0 : tensor<8x8xf32>
}
