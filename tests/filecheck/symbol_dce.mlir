// RUN: sdy_opt %s -symbol-dce | FileCheck %s

// CHECK: sdy.mesh @public
sdy.mesh @public = <["x"=2]>
// CHECK: sdy.mesh @used
sdy.mesh @used = <["x"=4]> {sym_visibility = "private"}
// CHECK-NOT: @unused
sdy.mesh @unused = <["x"=8]> {sym_visibility = "private"}

// CHECK: func.func @main
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@used, [{"x"}]>}) -> tensor<8xf32> {
  %0 = func.call @callee(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.composite "some.op" %0 {decomposition = @decomposition} : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK: func.func private @callee
func.func private @callee(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = func.call @inner(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK: func.func private @inner
func.func private @inner(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}

// CHECK: func.func private @decomposition
func.func private @decomposition(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}

// Dead functions go even if they call one another.
// CHECK-NOT: @dead
func.func private @dead_a(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = func.call @dead_b(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @dead_b(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
