// RUN: sdy_opt %s -sdy-constant-or-scalar-merger | FileCheck %s

sdy.mesh @mesh = <["a"=2]>

// Constants of equal value and attributes become the first of them, of whatever dialect; then broadcasts of one scalar.
// CHECK-LABEL: func.func @merged(
// CHECK-NEXT: %cst = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<2.000000e+00>
// CHECK-NEXT: %0 = stablehlo.broadcast_in_dim %cst, dims = []
// CHECK-NEXT: %1 = stablehlo.add %0, %0
// CHECK-NEXT: return %1
func.func @merged() -> tensor<4x6xf32> {
  %0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<2.0> : tensor<f32>
  %1 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<2.0> : tensor<f32>
  %2 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<2.0> : tensor<f32>
  %3 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
  %4 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
  %5 = stablehlo.add %3, %4 : tensor<4x6xf32>
  return %5 : tensor<4x6xf32>
}

// Other shardings, attributes, types or values keep them apart; so do other operands of broadcasts, and other shapes.
// CHECK-LABEL: func.func @apart(
// CHECK-NEXT: %cst = stablehlo.constant dense<2.000000e+00>
// CHECK-NEXT: %cst_0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<2.000000e+00>
// CHECK-NEXT: %cst_1 = stablehlo.constant dense<2.000000e+00>
// CHECK-NEXT: %cst_2 = stablehlo.constant {note = 1 : i32} dense<2.000000e+00>
// CHECK-NEXT: %0 = stablehlo.broadcast_in_dim %arg0, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// CHECK-NEXT: %1 = stablehlo.broadcast_in_dim %arg0, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
// CHECK-NEXT: %2 = stablehlo.broadcast_in_dim %arg1, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// CHECK-NEXT: %3 = stablehlo.broadcast_in_dim %arg0, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// CHECK-NEXT: %4 = stablehlo.broadcast_in_dim %arg2, dims = [0]
// CHECK-NEXT: %5 = stablehlo.broadcast_in_dim %arg2, dims = [0]
// CHECK-NEXT: %6 = stablehlo.iota dim = 0
// CHECK-NEXT: %7 = stablehlo.iota dim = 0
// CHECK-NEXT: return
func.func @apart(%arg0: tensor<f32>, %arg1: tensor<f32>, %arg2: tensor<1xf32>) {
  %0 = stablehlo.constant dense<2.0> : tensor<f32>
  %1 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<2.0> : tensor<f32>
  %2 = stablehlo.constant dense<2.0> : tensor<f64>
  %3 = stablehlo.constant {note = 1 : i32} dense<2.0> : tensor<f32>
  %4 = stablehlo.broadcast_in_dim %arg0, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<f32>) -> tensor<4x6xf32>
  %5 = stablehlo.broadcast_in_dim %arg0, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>} : (tensor<f32>) -> tensor<4x6xf32>
  %6 = stablehlo.broadcast_in_dim %arg1, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<f32>) -> tensor<4x6xf32>
  %7 = stablehlo.broadcast_in_dim %arg0, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<f32>) -> tensor<4x8xf32>
  %8 = stablehlo.broadcast_in_dim %arg2, dims = [0] : (tensor<1xf32>) -> tensor<4xf32>
  %9 = stablehlo.broadcast_in_dim %arg2, dims = [0] : (tensor<1xf32>) -> tensor<4xf32>
  %10 = stablehlo.iota dim = 0 : tensor<4xf32>
  %11 = stablehlo.iota dim = 0 : tensor<4xf32>
  return
}

// Every region has constants of its own; the inner ones come first.
// CHECK-LABEL: func.func @regions(
// CHECK-NEXT: %0 = sdy.constant dense<1.000000e+00>
// CHECK-NEXT: %1 = stablehlo.while(%iterArg = %arg0)
// CHECK-NEXT: cond {
// CHECK-NEXT: %2 = sdy.constant dense<false>
// CHECK-NEXT: stablehlo.return %2
// CHECK-NEXT: } do {
// CHECK-NEXT: %2 = sdy.constant dense<1.000000e+00>
// CHECK-NEXT: %3 = stablehlo.add %2, %2
// CHECK-NEXT: stablehlo.return %3
// CHECK-NEXT: }
// CHECK-NEXT: return %0, %1, %0
func.func @regions(%arg0: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %0 = sdy.constant dense<1.0> : tensor<f32>
  %1 = stablehlo.while(%iterArg = %arg0) : tensor<f32>
  cond {
    %3 = sdy.constant dense<false> : tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %3 = sdy.constant dense<1.0> : tensor<f32>
    %4 = sdy.constant dense<1.0> : tensor<f32>
    %5 = stablehlo.add %3, %4 : tensor<f32>
    stablehlo.return %5 : tensor<f32>
  }
  %2 = sdy.constant dense<1.0> : tensor<f32>
  return %0, %1, %2 : tensor<f32>, tensor<f32>, tensor<f32>
}
