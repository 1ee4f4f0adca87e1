// RUN: sdy_opt %s -split-input-file -sdy-constant-or-scalar-splitter | FileCheck %s

// Calls of a function that does more than compute constants are no constants, whatever their arguments; a name says it of
// all functions that were copied from one. Copied calls get copied callees, and theirs.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0 = sdy.constant dense<1.000000e+00>
// CHECK-NEXT: %1 = sdy.constant dense<1.000000e+00>
// CHECK-NEXT: %2 = sdy.constant dense<1.000000e+00>
// CHECK-NEXT: %3 = sdy.constant dense<1.000000e+00>
// CHECK-NEXT: %4 = call @product(%0)
// CHECK-NEXT: %5 = call @sum_1(%2)
// CHECK-NEXT: %6 = call @sum_3(%3)
// CHECK-NEXT: %7 = call @product_again(%1)
// CHECK-NEXT: %8 = stablehlo.add %4, %5
// CHECK-NEXT: %9 = stablehlo.add %6, %7
// CHECK-NEXT: return %8, %9, %4
func.func @main(%arg0: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = stablehlo.constant dense<1.0> : tensor<4x4xf32>
  %1 = call @product(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = call @sum(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = call @product_again(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = stablehlo.add %1, %2 : tensor<4x4xf32>
  %5 = stablehlo.add %2, %3 : tensor<4x4xf32>
  return %4, %5, %1 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
func.func private @product(%arg0: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot %arg0, %arg0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
func.func private @product_again(%arg0: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {sdy.original_func_name = "product"} {
  return %arg0 : tensor<4x4xf32>
}
// CHECK-LABEL: func.func private @sum(
// CHECK-NEXT: %0 = call @inner(%arg0)
func.func private @sum(%arg0: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = call @inner(%arg0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
func.func private @inner(%arg0: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.negate %arg0 : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
// CHECK-LABEL: func.func private @inner_0(%arg0: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {sdy.original_func_name = "inner"}
// CHECK-NEXT: %0 = stablehlo.negate %arg0
// CHECK-LABEL: func.func private @sum_1(%arg0: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {sdy.original_func_name = "sum"}
// CHECK-NEXT: %0 = call @inner_0(%arg0)
// CHECK-LABEL: func.func private @inner_2(%arg0: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {sdy.original_func_name = "inner"}
// CHECK-NEXT: %0 = stablehlo.negate %arg0
// CHECK-LABEL: func.func private @sum_3(%arg0: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {sdy.original_func_name = "sum"}
// CHECK-NEXT: %0 = call @inner_2(%arg0)

// -----

// Named computations are treated like calls, and are regions of their own.
// CHECK-LABEL: func.func @computations(
// CHECK-NEXT: %0 = sdy.constant dense<1.000000e+00>
// CHECK-NEXT: %1 = sdy.constant dense<1.000000e+00>
// CHECK-NEXT: %2 = sdy.constant dense<1.000000e+00>
// CHECK-NEXT: %3 = sdy.named_computation<"pointwise">(%1) (%arg1: tensor<4x4xf32>) {
// CHECK-NEXT: %8 = sdy.constant dense<2.000000e+00>
// CHECK-NEXT: %9 = sdy.constant dense<2.000000e+00>
// CHECK-NEXT: %10 = stablehlo.add %arg1, %8
// CHECK-NEXT: %11 = stablehlo.multiply %10, %9
// CHECK-NEXT: sdy.return %11
// CHECK-NEXT: }
// CHECK-NEXT: %4 = sdy.named_computation<"pointwise">(%2) (%arg1: tensor<4x4xf32>) {
// CHECK-NEXT: %8 = sdy.constant dense<2.000000e+00>
// CHECK-NEXT: %9 = sdy.constant dense<2.000000e+00>
// CHECK-NEXT: %10 = stablehlo.add %arg1, %8
// CHECK-NEXT: %11 = stablehlo.multiply %10, %9
// CHECK-NEXT: sdy.return %11
// CHECK-NEXT: }
// CHECK-NEXT: %5 = sdy.named_computation<"contraction">(%0) (%arg1: tensor<4x4xf32>) {
// CHECK-NEXT: %8 = stablehlo.dot %arg1, %arg1
// CHECK-NEXT: sdy.return %8
// CHECK-NEXT: }
// CHECK-NEXT: %6 = stablehlo.add %3, %5
// CHECK-NEXT: %7 = stablehlo.subtract %4, %5
// CHECK-NEXT: return %6, %7
func.func @computations(%arg0: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = stablehlo.constant dense<1.0> : tensor<4x4xf32>
  %1 = sdy.named_computation<"pointwise">(%0) (%arg1: tensor<4x4xf32>) {
    %5 = stablehlo.constant dense<2.0> : tensor<4x4xf32>
    %6 = stablehlo.add %arg1, %5 : tensor<4x4xf32>
    %7 = stablehlo.multiply %6, %5 : tensor<4x4xf32>
    sdy.return %7 : tensor<4x4xf32>
  } : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = sdy.named_computation<"contraction">(%0) (%arg1: tensor<4x4xf32>) {
    %5 = stablehlo.dot %arg1, %arg1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    sdy.return %5 : tensor<4x4xf32>
  } : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = stablehlo.add %1, %2 : tensor<4x4xf32>
  %4 = stablehlo.subtract %1, %2 : tensor<4x4xf32>
  return %3, %4 : tensor<4x4xf32>, tensor<4x4xf32>
}
