// RUN: sdy_opt %s -verify-diagnostics -sdy-close-shardings

// Without an axis, a closed dimension can have no priority.
sdy.mesh @mesh = <["a"=2]>
// expected-error@+1 {{got priority 2 on an empty closed dimension, needed an axis, an open dimension, or no priority}}
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}p2]>}) {
  return
}
