// RUN: sdy_opt %s -verify-diagnostics -sdy-propagate-sharding-from-func-to-call

// An inner module has symbols of its own.
// DIFFERS: the reference looks for the function among those outside, and ends the process
module {
  func.func @caller(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error@+1 {{calls @callee, which is not at the top of the module}}
    %0 = call @callee(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  func.func private @callee(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    return %arg0 : tensor<8xf32>
  }
}
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
