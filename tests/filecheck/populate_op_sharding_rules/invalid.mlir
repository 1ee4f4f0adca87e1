// RUN: sdy_opt %s -split-input-file -verify-diagnostics -sdy-populate-op-sharding-rules

func.func @dynamic(%arg0: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error@+1 {{'stablehlo.add' op has no valid sharding rule: building a sharding rule, for stablehlo.add: got a dynamic dimension, needed operands and results of static shape}}
  %0 = stablehlo.add %arg0, %arg0 : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// DIFFERS: the reference reads beyond a list
func.func @vector(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'stablehlo.custom_call' op has no valid sharding rule: looking for matrices, for @Eigh: got an operand of rank 1, needed rank 2 or more}}
  %0:2 = stablehlo.custom_call @Eigh(%arg0) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#0 : tensor<8xf32>
}
