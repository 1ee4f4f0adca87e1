// RUN: sdy_opt %s -split-input-file -verify-diagnostics -sdy-insert-explicit-reshards

// DIFFERS: the reference ends its process
sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>
sdy.mesh @n = <["a"=8]>
sdy.mesh @d0 = <[], device_ids=[0]>
sdy.mesh @d1 = <[], device_ids=[1]>
func.func @main(%l: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"b"}]>}, %r: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}]>}) -> tensor<8x8xf32> {
  // expected-error@+1 {{gives partial results: got {"b"} and {}}}
  %0 = stablehlo.dot %l, %r {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {}], unreduced={"b"}>]>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
