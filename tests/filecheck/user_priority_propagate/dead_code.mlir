// RUN: sdy_opt %s -sdy-user-priority-propagate | FileCheck %s
// UNDEFINED: the reference looks at an op again that it has erased, which may end its process.

// Dead code with a priority goes in the first round.
sdy.mesh @mesh = <["p"=2]>
// CHECK-LABEL: func.func @dead(
// CHECK-NEXT: return %arg0
func.func @dead(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}p1]>]>} : tensor<8xf32>
  return %arg0 : tensor<8xf32>
}
