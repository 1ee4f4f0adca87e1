// RUN: sdy_opt %s -split-input-file -pyshardy-import-custom-calls | FileCheck %s

// Constraints, a group, a barrier. A constraint that says nothing goes away.
// CHECK: sdy.mesh @mesh = <["x"=2]>
// CHECK-NEXT: func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
// CHECK-NEXT: %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x", ?}]> : tensor<8xf32>
// CHECK-NEXT: sdy.sharding_group %0 group_id=5 : tensor<8xf32>
// CHECK-NEXT: %1 = sdy.propagation_barrier %0 allowed_direction=NONE : tensor<8xf32>
// CHECK-NEXT: %2 = stablehlo.custom_call @other(%1) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: return %2 : tensor<8xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @Sharding(%x) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.custom_call @Sharding(%0) : (tensor<8xf32>) -> tensor<8xf32>
  stablehlo.custom_call @xla.sdy.ShardingGroup(%1) {has_side_effect = true, mhlo.frontend_attributes = {xla.sdy.sharding_group_id = "5 : i64"}} : (tensor<8xf32>) -> ()
  %2 = stablehlo.custom_call @xla.sdy.PropagationBarrier(%1) {mhlo.frontend_attributes = {xla.sdy.allowed_direction = "0 : i32"}} : (tensor<8xf32>) -> tensor<8xf32>
  %3 = stablehlo.custom_call @other(%2) : (tensor<8xf32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}

// -----

// The sharding of a result, and of one that is returned twice; the reshape with which HLO marks it is dropped. Where
// the function was inlined, it is a constraint with open dimensions.
// CHECK: sdy.mesh @mesh = <["x"=2]>
// CHECK-NEXT: func.func @main(%arg0: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, tensor<8xf32>) {
// CHECK-NEXT: %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x", ?}]> : tensor<8xf32>
// CHECK-NEXT: %1 = stablehlo.tanh %0 : tensor<8xf32>
// CHECK-NEXT: return %arg0, %arg0, %1 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.custom_call @xla.sdy.FuncResultSharding(%x) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.reshape %0 : (tensor<8xf32>) -> tensor<8xf32>
  %2 = stablehlo.custom_call @xla.sdy.FuncResultSharding(%x) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  %3 = stablehlo.tanh %2 : tensor<8xf32>
  return %0, %0, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// GSPMD's groups, with and without a sharding.
// CHECK: sdy.mesh @mesh = <["x"=2]>
// CHECK-NEXT: func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
// CHECK-NEXT: sdy.sharding_group %arg0 group_id=3 : tensor<8xf32>
// CHECK-NEXT: sdy.sharding_group %arg1 group_id=3 : tensor<8xf32>
// CHECK-NEXT: %0 = sdy.sharding_constraint %arg1 <@mesh, [{"x"}]> : tensor<8xf32>
// CHECK-NEXT: return %arg0, %0 : tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.custom_call @Sharding(%x) {mhlo.frontend_attributes = {xla.sdy.sharding_group_id = "3 : i64"}} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.custom_call @Sharding(%y) {mhlo.frontend_attributes = {xla.sdy.sharding_group_id = "3 : i64"}, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
