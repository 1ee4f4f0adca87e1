// REQUIRES: jaxlib-0.12
// RUN: sdy_opt %s -sdy-remove-size-one-axes | FileCheck %s
// NEWER: the dialect knew sums only.

// The kind of reduction stays, unseen where no unreduced axis is left.
sdy.mesh @mesh = <["x"=4, "o"=1]>
// CHECK-LABEL: func.func @kinds(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}], unreduced=min{"x"}>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32>
// CHECK-NEXT: return %arg0
func.func @kinds(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}], unreduced=min{"x", "o"}>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}], unreduced=max{"o"}>}) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
