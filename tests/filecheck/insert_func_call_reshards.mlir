// RUN: sdy_opt %s -split-input-file -sdy-insert-func-call-reshards | FileCheck %s

sdy.mesh @mesh = <["p"=2, "q"=2]>

// The call takes the shardings of its callee's results, open where there is none, and reshards what it wanted otherwise.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0:3 = call @three(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"q"}]>, <@mesh, [{?}]>, <@mesh, [{?}]>]>}
// CHECK-NEXT: %1 = sdy.reshard %0#2 <@mesh, [{"q"}]>
// CHECK-NEXT: %2 = sdy.reshard %0#0 <@mesh, [{"p"}]>
// CHECK-NEXT: %3 = stablehlo.add %2, %0#1
// CHECK-NEXT: %4 = stablehlo.add %3, %1
// CHECK-NEXT: return %4
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0:3 = call @three(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}]>, <@mesh, [{}]>, <@mesh, [{"q"}]>]>} : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  %1 = stablehlo.add %0#0, %0#1 : tensor<8xf32>
  %2 = stablehlo.add %1, %0#2 : tensor<8xf32>
  return %2 : tensor<8xf32>
}
func.func private @three(%arg0: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}]>}, tensor<8xf32>, tensor<8xf32>) {
  return %arg0, %arg0, %arg0 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// Without shardings on the callee its results count as replicated; without any sharding nothing happens.
// CHECK-LABEL: func.func private @absent(
// CHECK-NEXT: %0 = call @plain(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>}
// CHECK-NEXT: %1 = sdy.reshard %0 <@mesh, [{"p", ?}]>
// CHECK-NEXT: %2 = call @plain(%1)
// CHECK-NEXT: %3 = call @sharded(%2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}]>]>}
// CHECK-NEXT: %4 = sdy.reshard %3 <@mesh, [{}]>
// CHECK-NEXT: %5 = call @sharded(%4) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}]>]>}
// CHECK-NEXT: return %5
func.func private @absent(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @plain(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @plain(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = call @sharded(%1) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = call @sharded(%2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}
func.func private @plain(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
func.func private @sharded(%arg0: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}) {
  return %arg0 : tensor<8xf32>
}

// A declaration says what it gives.
// CHECK-LABEL: func.func private @outside(
// CHECK-NEXT: %0 = call @declared(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}]>]>}
// CHECK-NEXT: %1 = sdy.reshard %0 <@mesh, [{}]>
// CHECK-NEXT: return %1
func.func private @outside(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @declared(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @declared(tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>})

// -----

// NEWER: before, it got a reshard.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// A result that is unreduced along other axes than the callee's stays as it is, for verification to refuse.
// CHECK-LABEL: func.func private @unreduced(
// CHECK-NEXT: %0:2 = call @two(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}], unreduced={"q"}>, <@mesh, [{?}]>]>}
// CHECK-NEXT: %1 = sdy.reshard %0#1 <@mesh, [{"q"}]>
// CHECK-NEXT: return %0#0, %1
func.func private @unreduced(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0:2 = call @two(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}], unreduced={"q"}>, <@mesh, [{"q"}]>]>} : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}
func.func private @two(%arg0: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}]>}, tensor<8xf32>) {
  return %arg0, %arg0 : tensor<8xf32>, tensor<8xf32>
}
