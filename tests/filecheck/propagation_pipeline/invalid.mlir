// RUN: sdy_opt %s -split-input-file -verify-diagnostics -sdy-propagation-pipeline

func.func @dynamic(%arg0: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error@+1 {{propagation does not support a shape that is not static}}
  %0 = stablehlo.sine %arg0 : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// DIFFERS: the reference ends its process at a recursive function.
// expected-error@+1 {{'func.func' op calls itself: @main -> @main}}
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @main(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// DIFFERS: the reference ends its process without a main function.
// expected-error@unknown {{looking for the main function: got the functions @first, @second, needed a function named @main, or exactly one that is public}}
func.func @first() {
  return
}
func.func @second() {
  return
}

// -----

// NEWER: before, unreduced axes were not checked.
sdy.mesh @mesh = <["x"=2]>
func.func @unreduced(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x"}>}) -> tensor<8xf32> {
  // expected-error@+1 {{unreduced ax}}
  %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
