// RUN: sdy_opt %s -verify-diagnostics -sdy-import-func-calls

func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'func.call' op calls @blocks, whose body has several blocks; a named computation can hold one}}
  %0 = call @blocks(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @blocks(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  cf.br ^bb1
^bb1:
  return %arg0 : tensor<8xf32>
}
