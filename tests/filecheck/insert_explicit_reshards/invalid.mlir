// RUN: sdy_opt %s -split-input-file -verify-diagnostics -sdy-insert-explicit-reshards='enable-full-version=true'

// NEWER: there were no ops on single devices
sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>
sdy.mesh @n = <["a"=8]>
sdy.mesh @d0 = <[], device_ids=[0]>
sdy.mesh @d1 = <[], device_ids=[1]>
// expected-error@+1 {{'func.func' op has argument 0 on a single device; only ops inside may be}}
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@d0, []>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}

// -----

// NEWER: there were no ops on single devices
sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>
sdy.mesh @n = <["a"=8]>
sdy.mesh @d0 = <[], device_ids=[0]>
sdy.mesh @d1 = <[], device_ids=[1]>
// expected-error@+1 {{'func.func' op has result 0 on a single device; only ops inside may be}}
func.func @main(%x: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@d0, []>}) {
  return %x : tensor<8x8xf32>
}

// -----

// DIFFERS: the reference ends its process
sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>
sdy.mesh @n = <["a"=8]>
sdy.mesh @d0 = <[], device_ids=[0]>
sdy.mesh @d1 = <[], device_ids=[1]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}], unreduced={"b"}>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@n, [{"a"}, {}]>}) {
  // expected-error@+1 {{'func.return' op needs operand 0, which is sharded <@m, [{"a"}, {}], unreduced={"b"}>, as <@n, [{"a"}, {}]>; with unreduced axes both must be on the same mesh}}
  return %x : tensor<8x8xf32>
}

// -----

// DIFFERS: the reference ends its process
sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>
sdy.mesh @n = <["a"=8]>
sdy.mesh @d0 = <[], device_ids=[0]>
sdy.mesh @d1 = <[], device_ids=[1]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}], unreduced={"b"}>}) -> tensor<8x8xf32> {
  // expected-error@+1 {{'stablehlo.custom_call' op has operand 0 with unreduced axes but no results}}
  stablehlo.custom_call @f(%x) {has_side_effect = true} : (tensor<8x8xf32>) -> ()
  return %x : tensor<8x8xf32>
}

// -----

// DIFFERS: the reference ends its process
sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>
sdy.mesh @n = <["a"=8]>
sdy.mesh @d0 = <[], device_ids=[0]>
sdy.mesh @d1 = <[], device_ids=[1]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}], unreduced={"b"}>}) -> tensor<8x8xf32> {
  // expected-error@+1 {{'stablehlo.custom_call' op has results with different unreduced axes}}
  %0:2 = stablehlo.custom_call @f(%x) {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {}]>, <@m, [{}, {}], unreduced={"a"}>]>} : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  return %0#0 : tensor<8x8xf32>
}

// -----

// DIFFERS: the reference ends its process
sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>
sdy.mesh @n = <["a"=8]>
sdy.mesh @d0 = <[], device_ids=[0]>
sdy.mesh @d1 = <[], device_ids=[1]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}], unreduced={"b"}>}) -> tensor<8x8xf32> {
  // expected-error@+1 {{'sdy.reshard' op drops and adds unreduced axes at once, "b" and "c"}}
  %0 = sdy.reshard %x <@m, [{"a"}, {}], unreduced={"c"}> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// NEWER: there were no ops on single devices
sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>
sdy.mesh @n = <["a"=8]>
sdy.mesh @d0 = <[], device_ids=[0]>
sdy.mesh @d1 = <[], device_ids=[1]>
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error@+1 {{'stablehlo.custom_call' op has results on different single devices}}
  %0:2 = stablehlo.custom_call @f(%x) {sdy.sharding = #sdy.sharding_per_value<[<@d0, []>, <@d1, []>]>} : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  return %0#0 : tensor<8x8xf32>
}

// -----

sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>
sdy.mesh @n = <["a"=8]>
sdy.mesh @d0 = <[], device_ids=[0]>
sdy.mesh @d1 = <[], device_ids=[1]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}, %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  // expected-error@+1 {{'stablehlo.add' op sharding a tensor: got axis "a" twice}}
  %0 = stablehlo.add %x, %y {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {}], replicated={"a"}>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
