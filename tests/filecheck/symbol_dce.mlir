// RUN: sdy_opt %s -split-input-file -symbol-dce | FileCheck %s

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

// -----

// Every attribute counts, at any depth; a declaration, and what is visible only to its surroundings, goes like the rest.
// CHECK: sdy.mesh @in_groups = <["x"=2]> {sym_visibility = "private"}
// CHECK: func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
// CHECK: func.func private @called()
// CHECK: func.func private @deep()
sdy.mesh @in_groups = <["x"=2]> {sym_visibility = "private"}
sdy.mesh @of_dead_function = <["x"=2]> {sym_visibility = "private"}
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @foo(%arg0) {called_computations = [@called]} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.sine %0 {some.attribute = {deep = [@deep, 1 : i32]}} : tensor<8xf32>
  %2 = "stablehlo.collective_broadcast"(%1) <{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @in_groups, axes = [#stablehlo.axis_ref<name = "x">]>}> : (tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}
func.func private @called()
func.func private @deep()
func.func nested @nested()
func.func private @declared()
func.func private @dead(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@of_dead_function, [{"x"}]>}) {
  return
}
