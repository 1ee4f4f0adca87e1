// REQUIRES: jaxlib-0.12
// RUN: sdy_opt %s -split-input-file -verify-diagnostics -sdy-verify-unreduced-axes
// How partial values combine, which older dialects do not know.

// NEWER: the pass is new.
sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>
sdy.mesh @n = <["a"=8]>
sdy.mesh @d0 = <[], device_ids=[0]>
sdy.mesh @d1 = <[], device_ids=[1]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"b"}]>}, %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"b"}, {}]>}) -> tensor<8x8xf32> {
  // expected-error@+1 {{'stablehlo.dot' op gives partial results along "b" combined by max, needed sum}}
  %0 = stablehlo.dot %x, %y {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {}], unreduced=max{"b"}>]>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// NEWER: the pass is new.
sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>
sdy.mesh @n = <["a"=8]>
sdy.mesh @d0 = <[], device_ids=[0]>
sdy.mesh @d1 = <[], device_ids=[1]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}], unreduced={"b"}>}) -> tensor<8x8xf32> {
  // expected-error@+1 {{'stablehlo.abs' op keeps unreduced axes but changes how they combine, from sum to max}}
  %0 = stablehlo.abs %x {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a"}, {}], unreduced=max{"b"}>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
