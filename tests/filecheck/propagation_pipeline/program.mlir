// RUN: sdy_opt %s -split-input-file -sdy-propagation-pipeline | FileCheck %s

// A layer: shardings propagate, constraints become reshards, groups go, shardings are closed, and a contraction over a
// sharded dimension gets an all-reduce.
sdy.mesh @mesh = <["data"=2, "model"=4]>
// CHECK-LABEL: func.func @layer(%arg0: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>}, %arg1: tensor<32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}, %arg2: tensor<8xf32>) -> (tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>})
// CHECK-NEXT: %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>}
// CHECK-NEXT: %1 = stablehlo.broadcast_in_dim %arg2, dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>}
// CHECK-NEXT: %2 = stablehlo.add %0, %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>}
// CHECK-NEXT: %3 = sdy.reshard %2 <@mesh, [{"data"}, {}]>
// CHECK-NEXT: %4 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>} dense<0.000000e+00>
// CHECK-NEXT: %5 = stablehlo.maximum %3, %4 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>}
// CHECK-NEXT: return %5
func.func @layer(%arg0: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data", ?}, {"model"}]>}, %arg1: tensor<32x8xf32>, %arg2: tensor<8xf32>) -> (tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>}) {
  %0 = stablehlo.dot %arg0, %arg1 : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
  %1 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<8xf32>) -> tensor<16x8xf32>
  %2 = stablehlo.add %0, %1 : tensor<16x8xf32>
  sdy.sharding_group %2 group_id=1 : tensor<16x8xf32>
  %3 = sdy.sharding_constraint %2 <@mesh, [{"data"}, {}]> : tensor<16x8xf32>
  %4 = stablehlo.constant dense<0.0> : tensor<16x8xf32>
  %5 = stablehlo.maximum %3, %4 : tensor<16x8xf32>
  return %5 : tensor<16x8xf32>
}

// -----

// A loop and a manual computation hold their shardings themselves in the end.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @loop(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {}]>}, %arg1: tensor<i32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {}]>})
// CHECK-NEXT: %0 = sdy.constant dense<1>
// CHECK-NEXT: %1:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}, {}]>, <@mesh, []>]>}
// CHECK-NEXT: cond {
// CHECK-NEXT: %4 = stablehlo.compare LT, %iterArg_0, %arg1
// CHECK-NEXT: stablehlo.return %4
// CHECK-NEXT: } do {
// CHECK-NEXT: %4 = stablehlo.sine %iterArg {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}, {}]>]>}
// CHECK-NEXT: %5 = stablehlo.add %iterArg_0, %0
// CHECK-NEXT: stablehlo.return %4, %5
// CHECK-NEXT: }
// CHECK-NEXT: %2 = sdy.reshard %1#0 <@mesh, [{"p"}, {}]>
// CHECK-NEXT: %3 = sdy.manual_computation(%2) in_shardings=[<@mesh, [{"p"}, {}]>] out_shardings=[<@mesh, [{"p"}, {}]>] manual_axes={"p", "q"} (%arg2: tensor<4x8xf32>) {
// CHECK-NEXT: %4 = stablehlo.negate %arg2
// CHECK-NEXT: sdy.return %4
// CHECK-NEXT: }
// CHECK-NEXT: return %3
func.func @loop(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {}]>}, %arg1: tensor<i32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {}]>}) {
  %0 = stablehlo.constant dense<1> : tensor<i32>
  %1:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i32>
  cond {
    %3 = stablehlo.compare LT, %iterArg_0, %arg1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %3 = stablehlo.sine %iterArg : tensor<8x8xf32>
    %4 = stablehlo.add %iterArg_0, %0 : tensor<i32>
    stablehlo.return %3, %4 : tensor<8x8xf32>, tensor<i32>
  }
  %2 = sdy.manual_computation(%1#0) in_shardings=[<@mesh, [{"p"}, {}]>] out_shardings=[<@mesh, [{"p"}, {}]>] manual_axes={"p", "q"} (%arg2: tensor<4x8xf32>) {
    %3 = stablehlo.negate %arg2 : tensor<4x8xf32>
    sdy.return %3 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// Borders divide dimensions and have no sub-axes; user priorities decide between conflicts.
sdy.mesh @mesh = <["p"=4, "q"=2]>
// CHECK-LABEL: func.func @borders(%arg0: tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}, {}]>}, %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"q"}]>}) -> (tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"q"}]>})
// CHECK-NEXT: %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}, {}]>]>}
// CHECK-NEXT: %1 = stablehlo.dot %arg1, %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"q"}]>]>}
// CHECK-NEXT: return %0, %1
func.func @borders(%arg0: tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}p1, {?}]>}, %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q"}p0]>}) -> (tensor<6x8xf32>, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}]>}) {
  %0 = stablehlo.sine %arg0 : tensor<6x8xf32>
  %1 = stablehlo.dot %arg1, %arg2 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<6x8xf32>, tensor<8x8xf32>
}

// -----

// DIFFERS: the reference puts a second edge on what has one, and refuses the module.
// Named computations that come with the module are treated like those that calls become.
sdy.mesh @mesh = <["p"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>})
// CHECK-NEXT: %0 = call @block(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}]>]>}
// CHECK-NEXT: return %0
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}) -> tensor<8xf32> {
  %0 = sdy.named_computation<"block">(%arg0) (%arg1: tensor<8xf32>) {
    %1 = stablehlo.sine %arg1 : tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// CHECK-LABEL: func.func private @block(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>})
// CHECK-NEXT: %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}]>]>}
// CHECK-NEXT: return %0
