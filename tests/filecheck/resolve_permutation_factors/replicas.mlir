// RUN: sdy_opt %s -sdy-resolve-permutation-factors='replica-count=2' | FileCheck %s

// NEWER: the pass did something else
sdy.mesh @mesh = <["x"=2]>
// CHECK: stablehlo.replica_id
// CHECK: "stablehlo.collective_permute"(%arg1) <{source_target_pairs = dense<{{\[}}[1, 0]]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<6xf32> {
  %0 = stablehlo.slice %a [2:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}
