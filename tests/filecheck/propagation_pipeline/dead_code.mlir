// RUN: sdy_opt %s -sdy-propagation-pipeline | FileCheck %s
// UNDEFINED: the reference looks at an op again that it has erased, which may end its process.

// Dead code with a priority goes, and what only dead code uses goes with it.
sdy.mesh @mesh = <["p"=2]>
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: return %arg0
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}p1]>]>} : tensor<8xf32>
  %1 = stablehlo.sine %0 : tensor<8xf32>
  return %arg0 : tensor<8xf32>
}
