// RUN: sdy_opt %s -verify-diagnostics -pyshardy-auto-partition

// expected-error@+1 {{cannot be searched: searching for shardings: got a program without a mesh}}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
