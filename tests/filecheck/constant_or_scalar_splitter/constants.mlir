// RUN: sdy_opt %s -split-input-file -sdy-constant-or-scalar-splitter | FileCheck %s

// Every use of a constant expression gets a copy of the whole expression, right before the original, which goes; copies
// take their sharding groups along. Scalars are shared, but their broadcasts are copied. A dead constant goes, and so does
// one that only dead constants use. A call of a function that computes a constant from constants is an expression too.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0 = sdy.constant {tag = 1 : i32} dense<2.000000e+00>
// CHECK-NEXT: %1 = sdy.constant {tag = 1 : i32} dense<2.000000e+00>
// CHECK-NEXT: %2 = stablehlo.exponential %0
// CHECK-NEXT: sdy.sharding_group %2 group_id=3
// CHECK-NEXT: sdy.sharding_group %2 group_id=8
// CHECK-NEXT: %3 = stablehlo.exponential %1
// CHECK-NEXT: sdy.sharding_group %3 group_id=3
// CHECK-NEXT: sdy.sharding_group %3 group_id=8
// CHECK-NEXT: %4 = stablehlo.broadcast_in_dim %arg1, dims = []
// CHECK-NEXT: %5 = stablehlo.broadcast_in_dim %arg1, dims = []
// CHECK-NEXT: %6 = "stablehlo.if"(%arg2) ({
// CHECK-NEXT: %10 = stablehlo.add %arg0, %2
// CHECK-NEXT: stablehlo.return %10
// CHECK-NEXT: }, {
// CHECK-NEXT: stablehlo.return %4
// CHECK-NEXT: })
// CHECK-NEXT: %7 = stablehlo.subtract %5, %arg0
// CHECK-NEXT: %8 = call @ramp_0(%3)
// CHECK-NEXT: %9 = stablehlo.multiply %8, %7
// CHECK-NEXT: return %6, %9
func.func @main(%arg0: tensor<4x4xf32>, %arg1: tensor<f32>, %arg2: tensor<i1>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = stablehlo.constant {tag = 1 : i32} dense<2.0> : tensor<4x4xf32>
  %1 = stablehlo.exponential %0 : tensor<4x4xf32>
  sdy.sharding_group %1 group_id=8 : tensor<4x4xf32>
  sdy.sharding_group %1 group_id=3 : tensor<4x4xf32>
  %2 = stablehlo.cosine %1 : tensor<4x4xf32>
  %3 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
  %4 = "stablehlo.if"(%arg2) ({
    %8 = stablehlo.add %arg0, %1 : tensor<4x4xf32>
    stablehlo.return %8 : tensor<4x4xf32>
  }, {
    stablehlo.return %3 : tensor<4x4xf32>
  }) : (tensor<i1>) -> tensor<4x4xf32>
  %5 = stablehlo.subtract %3, %arg0 : tensor<4x4xf32>
  %6 = func.call @ramp(%1) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %7 = stablehlo.multiply %6, %5 : tensor<4x4xf32>
  return %4, %7 : tensor<4x4xf32>, tensor<4x4xf32>
}
// CHECK-LABEL: func.func private @ramp(
// CHECK-NEXT: %0 = stablehlo.iota dim = 0
// CHECK-NEXT: %1 = stablehlo.add %arg0, %0
// CHECK-NEXT: return %1
func.func private @ramp(%arg0: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<4x4xf32>
  %1 = stablehlo.add %arg0, %0 : tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}
// CHECK-LABEL: func.func private @ramp_0(%arg0: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {sdy.original_func_name = "ramp"}
// CHECK-NEXT: %0 = stablehlo.iota dim = 0
// CHECK-NEXT: %1 = stablehlo.add %arg0, %0
// CHECK-NEXT: return %1

// -----

// What is used twice inside one expression is copied once per copy of the expression; shardings are copied.
sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @diamond(
// CHECK-NEXT: %0 = stablehlo.iota dim = 0
// CHECK-NEXT: %1 = stablehlo.iota dim = 0
// CHECK-NEXT: %2 = stablehlo.iota dim = 0
// CHECK-NEXT: %3 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
// CHECK-NEXT: %4 = stablehlo.negate %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
// CHECK-NEXT: %5 = stablehlo.negate %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
// CHECK-NEXT: %6 = stablehlo.add %0, %3
// CHECK-NEXT: %7 = stablehlo.add %1, %4
// CHECK-NEXT: %8 = stablehlo.add %arg0, %6
// CHECK-NEXT: %9 = stablehlo.multiply %8, %7
// CHECK-NEXT: return %9, %5
func.func @diamond(%arg0: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.iota dim = 0 : tensor<4xf32>
  %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
  %2 = stablehlo.add %0, %1 : tensor<4xf32>
  %3 = stablehlo.add %arg0, %2 : tensor<4xf32>
  %4 = stablehlo.multiply %3, %2 : tensor<4xf32>
  return %4, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// What preserves a constant: element-wise ops, broadcasts, reshapes and slices, if all operands are constant.
// CHECK-LABEL: func.func @preserving(
// CHECK-NEXT: %0 = sdy.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]>
// CHECK-NEXT: %1 = sdy.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]>
// CHECK-NEXT: %2 = sdy.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]>
// CHECK-NEXT: %3 = sdy.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]>
// CHECK-NEXT: %4 = stablehlo.reshape %2
// CHECK-NEXT: %5 = stablehlo.reshape %3
// CHECK-NEXT: %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1]
// CHECK-NEXT: %7 = stablehlo.slice %6 [0:1, 0:1, 0:2]
// CHECK-NEXT: %8 = stablehlo.reshape %7
// CHECK-NEXT: %9 = stablehlo.add %0, %arg0
// CHECK-NEXT: %10 = stablehlo.reverse %1, dims = [0]
// CHECK-NEXT: %11 = stablehlo.transpose %4, dims = [1, 0]
// CHECK-NEXT: return %8, %9, %10, %11
func.func @preserving(%arg0: tensor<4xf32>) -> (tensor<2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>) {
  %0 = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %1 = stablehlo.reshape %0 : (tensor<4xf32>) -> tensor<2x2xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<2x2xf32>) -> tensor<2x2x2xf32>
  %3 = stablehlo.slice %2 [0:1, 0:1, 0:2] : (tensor<2x2x2xf32>) -> tensor<1x1x2xf32>
  %4 = stablehlo.reshape %3 : (tensor<1x1x2xf32>) -> tensor<2xf32>
  %5 = stablehlo.add %0, %arg0 : tensor<4xf32>
  %6 = stablehlo.reverse %0, dims = [0] : tensor<4xf32>
  %7 = stablehlo.transpose %1, dims = [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %4, %5, %6, %7 : tensor<2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>
}

// -----

// Constants become sdy.constant everywhere, in regions too, with all attributes; scalars stay one. Inside a region the
// copy stands by the original.
// CHECK-LABEL: func.func @regions(
// CHECK-NEXT: %0 = sdy.constant dense<1>
// CHECK-NEXT: %1 = sdy.constant dense<2.000000e+00>
// CHECK-NEXT: %2:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1)
// CHECK-NEXT: cond {
// CHECK-NEXT: %4 = sdy.constant dense<10>
// CHECK-NEXT: %5 = stablehlo.compare LT, %iterArg_0, %4
// CHECK-NEXT: stablehlo.return %5
// CHECK-NEXT: } do {
// CHECK-NEXT: %4 = stablehlo.add %iterArg_0, %0
// CHECK-NEXT: %5 = sdy.constant {tag = "inner"} dense<3.000000e+00>
// CHECK-NEXT: %6 = sdy.constant {tag = "inner"} dense<3.000000e+00>
// CHECK-NEXT: %7 = stablehlo.add %iterArg, %5
// CHECK-NEXT: %8 = stablehlo.multiply %7, %1
// CHECK-NEXT: %9 = stablehlo.multiply %8, %6
// CHECK-NEXT: stablehlo.return %9, %4
// CHECK-NEXT: }
// CHECK-NEXT: %3 = stablehlo.add %2#1, %0
// CHECK-NEXT: return %2#0, %3
func.func @regions(%arg0: tensor<4xf32>, %arg1: tensor<i32>) -> (tensor<4xf32>, tensor<i32>) {
  %0 = stablehlo.constant dense<1> : tensor<i32>
  %1 = stablehlo.constant dense<2.0> : tensor<4xf32>
  %2:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<4xf32>, tensor<i32>
  cond {
    %3 = stablehlo.constant dense<10> : tensor<i32>
    %4 = stablehlo.compare LT, %iterArg_0, %3 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  } do {
    %3 = stablehlo.add %iterArg_0, %0 : tensor<i32>
    %4 = stablehlo.constant {tag = "inner"} dense<3.0> : tensor<4xf32>
    %5 = stablehlo.add %iterArg, %4 : tensor<4xf32>
    %6 = stablehlo.multiply %5, %1 : tensor<4xf32>
    %7 = stablehlo.multiply %6, %4 : tensor<4xf32>
    stablehlo.return %7, %3 : tensor<4xf32>, tensor<i32>
  }
  %8 = stablehlo.add %2#1, %0 : tensor<i32>
  return %2#0, %8 : tensor<4xf32>, tensor<i32>
}
