// RUN: sdy_opt %s -split-input-file -verify-diagnostics -sdy-resolve-single-device-sharding='replica-count=2 partition-count=2'

// NEWER: there was no such pass
// DIFFERS: the reference ends its process
sdy.mesh @g = <["p"=4]>
sdy.mesh @one = <[], device_ids=[1]>
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{is on a single device, which needs a single replica or a single partition}}
  %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
