// RUN: sdy_opt %s -split-input-file -verify-diagnostics -sdy-resolve-single-device-sharding

// NEWER: there was no such pass
// DIFFERS: the reference ends its process
sdy.mesh @g = <["p"=4]>
sdy.mesh @one = <[], device_ids=[1]>
sdy.mesh @two = <[], device_ids=[2]>
func.func @two_devices(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{has results on different single devices}}
  %0:2 = stablehlo.custom_call @foo(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@one, []>, <@two, []>]>} : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#0 : tensor<8xf32>
}

// -----

// NEWER: there was no such pass
// DIFFERS: the reference ends its process
sdy.mesh @g = <["p"=4]>
sdy.mesh @one = <[], device_ids=[1]>
func.func @sharded(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{is on a single device but has result 1 sharded over several}}
  %0:2 = stablehlo.custom_call @foo(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@one, []>, <@g, [{"p"}]>]>} : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#0 : tensor<8xf32>
}

// -----

// NEWER: there was no such pass
sdy.mesh @g = <["p"=4]>
sdy.mesh @one = <[], device_ids=[1]>
func.func @main(%arg0: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error@+1 {{is on a single device and has a result with a dynamic shape}}
  %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// NEWER: there was no such pass
// DIFFERS: the reference ends its process
sdy.mesh @g = <["p"=4]>
sdy.mesh @far = <[], device_ids=[4294967296]>
func.func @far_away(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{is on device 4294967296, but @g has only 4 devices, counted from 0}}
  %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@far, []>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// NEWER: there was no such pass
// DIFFERS: the reference ends its process
sdy.mesh @g = <["p"=9223372036854775807]>
sdy.mesh @far = <[], device_ids=[4294967296]>
func.func @beyond_32_bits(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{is on device 4294967296, but the numbers of devices have 32 bits}}
  %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@far, []>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// NEWER: there was no such pass
// DIFFERS: the reference lets no device run the op, so the result is zeros
sdy.mesh @g = <["p"=4]>
sdy.mesh @outside = <[], device_ids=[4]>
func.func @not_of_the_mesh(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{is on device 4, but @g has only 4 devices, counted from 0}}
  %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@outside, []>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
