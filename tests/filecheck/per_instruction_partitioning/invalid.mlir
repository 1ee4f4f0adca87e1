// RUN: sdy_opt %s -split-input-file -verify-diagnostics -sdy-per-instruction-partitioning

// NEWER: there was no such pass
// DIFFERS: the reference fails without a word
sdy.mesh @mesh = <["x"=2, "y"=2]>
sdy.mesh @other = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>
func.func @meshes(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error@+1 {{has values on different meshes, and a manual computation is on one}}
  %0 = sdy.reshard %arg0 <@other, [{"x"}]> : tensor<8xf32>
  return
}

// -----

// NEWER: there was no such pass
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  // expected-error@+1 {{calls @f, which has no body that could run on shards}}
  %0 = func.call @f(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return
}
func.func private @f(tensor<8xf32>) -> tensor<8xf32>

// -----

// NEWER: there was no such pass
// DIFFERS: the reference ends its process
// expected-error@below {{lacks a single, public or main function, whose ops would be partitioned; it has @f, @g}}
module {
  func.func private @f() {
    return
  }
  func.func private @g() {
    return
  }
}
