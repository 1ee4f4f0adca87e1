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

// -----

// Whatever refers to a symbol keeps it: attributes of other dialects on ops, arguments, results and functions, and ops
// of other dialects. A path leads into modules only.
// CHECK: func.func @references
func.func @references(%arg0: tensor<8xf32> {my.a = @by_argument}) -> (tensor<8xf32> {my.a = [@by_result]})
    attributes {my.a = {b = @by_function}} {
  %0 = stablehlo.tanh %arg0 {my.a = @by_op} : tensor<8xf32>
  %1 = stablehlo.reduce_precision %0, format = e5m2 {mine = @first::@last, other = @inside::@last} : tensor<8xf32>
  %2 = func.constant @by_constant : () -> ()
  func.call_indirect %2() : () -> ()
  return %1 : tensor<8xf32>
}
// CHECK: func.func private @by_argument
// CHECK: func.func private @by_result
// CHECK: func.func private @by_function
// CHECK: func.func private @by_op
// CHECK: func.func private @by_constant
// CHECK-NOT: func.func private @first
// CHECK: module @inside
func.func private @by_argument() { return }
func.func private @by_result() { return }
func.func private @by_function() { return }
func.func private @by_op() { return }
func.func private @by_constant() { return }
func.func private @first() { return }
func.func private @last() { return }
"builtin.module"() <{sym_name = "inside", sym_visibility = "private"}> ({
  func.func @last() { return }
}) : () -> ()
