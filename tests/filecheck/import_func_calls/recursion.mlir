// RUN: sdy_opt %s -verify-diagnostics -sdy-import-func-calls
// DIFFERS: the reference does not notice, and gives something that makes no sense.

func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @ping(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// expected-error@+1 {{'func.func' op calls itself: @ping -> @pong -> @ping}}
func.func private @ping(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @pong(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @pong(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @ping(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
