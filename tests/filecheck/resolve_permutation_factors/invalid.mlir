// RUN: sdy_opt %s -verify-diagnostics -sdy-resolve-permutation-factors='replica-count=2 partition-count=2'

// NEWER: there were no such options
// DIFFERS: the reference ends its process
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<6xf32> {
  // expected-error@+1 {{may need data of other devices, which needs a single replica or a single partition}}
  %0 = stablehlo.slice %a [2:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}
