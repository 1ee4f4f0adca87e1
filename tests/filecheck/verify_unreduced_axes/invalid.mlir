// RUN: sdy_opt %s -split-input-file -verify-diagnostics -sdy-verify-unreduced-axes

// NEWER: the pass is new.
sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>
sdy.mesh @n = <["a"=8]>
sdy.mesh @d0 = <[], device_ids=[0]>
sdy.mesh @d1 = <[], device_ids=[1]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}], unreduced={"b"}>}) -> tensor<8x8xf32> {
  // expected-error@+1 {{'stablehlo.abs' op drops the unreduced axes of its operands along "b", which this op cannot; only a reshard, an all-reduce or a reduce-scatter may}}
  %0 = stablehlo.abs %x {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a"}, {}]>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// NEWER: the pass is new.
sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>
sdy.mesh @n = <["a"=8]>
sdy.mesh @d0 = <[], device_ids=[0]>
sdy.mesh @d1 = <[], device_ids=[1]>
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error@+1 {{'sdy.all_reduce' op has an operand without a sharding}}
  %0 = sdy.all_reduce {"b"} %x out_sharding=<@m, [{}, {}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// NEWER: the pass is new.
sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>
sdy.mesh @n = <["a"=8]>
sdy.mesh @d0 = <[], device_ids=[0]>
sdy.mesh @d1 = <[], device_ids=[1]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}], unreduced={"b"}>}) -> tensor<8x8xf32> {
  // expected-error@+1 {{'func.call' op has other unreduced axes than its counterpart for argument 0 of the call: b; reshard in between}}
  %0 = func.call @f(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
func.func private @f(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}

// -----

// NEWER: the pass is new.
sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>
sdy.mesh @n = <["a"=8]>
sdy.mesh @d0 = <[], device_ids=[0]>
sdy.mesh @d1 = <[], device_ids=[1]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}], unreduced={"b"}>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}) {
  // expected-error@+1 {{'func.return' op has other unreduced axes than its counterpart for}}
  return %x : tensor<8x8xf32>
}
