// RUN: sdy_opt %s -split-input-file -pyshardy-import-result-sharding | FileCheck %s

// The op behind two calls decides, not the calls.
// CHECK-LABEL: module @op
// CHECK: func.func @main(%arg0: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
module @op {
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @g(%x) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @g(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%x) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.negate %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
}

// -----

// The result of a function is asked before the op.
// CHECK-LABEL: module @result
// CHECK: func.func @main(%arg0: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>}) {
module @result {
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @f(%x: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>}) {
  %0 = stablehlo.negate %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
}

// -----

// Behind a call of a function with several results only the call itself is asked.
// CHECK-LABEL: module @several
// CHECK: func.func @main(%arg0: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>}) {
module @several {
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0:2 = call @f(%x) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>, <@mesh, [{"b"}]>]>}
    : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#1 : tensor<8xf32>
}
func.func private @f(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.negate %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<8xf32>
  return %x, %0 : tensor<8xf32>, tensor<8xf32>
}
}

// -----

// Functions that call each other are left to the pass that refuses them.
// CHECK-LABEL: module @cycle
// CHECK: func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
module @cycle {
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
}

// -----

// A result that is an argument, behind a call and ops that do nothing, has its sharding; theirs are lost.
// CHECK-LABEL: module @argument
// CHECK: func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
// CHECK-NEXT: call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: stablehlo.slice %0 [0:8] : (tensor<8xf32>) -> tensor<8xf32>
module @argument {
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
  %0 = call @f(%x) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.slice %0 [0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
}

// -----

// One that is an argument without a sharding has none.
// CHECK-LABEL: module @open
// CHECK: func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
// CHECK-NEXT: stablehlo.convert %arg0 : tensor<8xf32>
module @open {
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.convert %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
}
