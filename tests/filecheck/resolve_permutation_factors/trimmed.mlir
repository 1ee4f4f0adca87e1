// RUN: sdy_opt %s -sdy-resolve-permutation-factors='trim-halos=true' | FileCheck %s

// NEWER: the pass did something else
// The neighbour sends only the elements that any device needs.
// CHECK: sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<14xf32> {
// CHECK-NEXT: %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0, %cst) in_shardings=[<@mesh, [{"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<8xf32>, %arg2: tensor<f32>) {
// CHECK-NEXT: %1 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %2 = stablehlo.convert %1 : (tensor<ui32>) -> tensor<i32>
// CHECK-NEXT: %3 = stablehlo.slice %arg1 [0:1] : (tensor<8xf32>) -> tensor<1xf32>
// CHECK-NEXT: %4 = "stablehlo.collective_permute"(%3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<{{\[\[}}1, 0{{\]\]}}> : tensor<1x2xi64>}> : (tensor<1xf32>) -> tensor<1xf32>
// CHECK-NEXT: %c = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT: %5 = stablehlo.compare LT, %2, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT: %6 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1xf32>
// CHECK-NEXT: %7 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<i1>) -> tensor<1xi1>
// CHECK-NEXT: %8 = stablehlo.select %7, %4, %6 : tensor<1xi1>, tensor<1xf32>
// CHECK-NEXT: %9 = stablehlo.concatenate %arg1, %8, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<8xf32>, tensor<1xf32>) -> tensor<9xf32>
// CHECK-NEXT: %10 = stablehlo.pad %9, %arg2, low = [7], high = [7], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<9xf32>, tensor<f32>) -> tensor<23xf32>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<-1> : tensor<i32>
// CHECK-NEXT: %c_1 = stablehlo.constant dense<9> : tensor<i32>
// CHECK-NEXT: %11 = stablehlo.multiply %2, %c_0 : tensor<i32>
// CHECK-NEXT: %12 = stablehlo.add %11, %c_1 : tensor<i32>
// CHECK-NEXT: %c_2 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %13 = stablehlo.maximum %12, %c_2 : tensor<i32>
// CHECK-NEXT: %14 = stablehlo.dynamic_slice %10, %13, sizes = [7] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<23xf32>, tensor<i32>) -> tensor<7xf32>
// CHECK-NEXT: sdy.return %14 : tensor<7xf32>
// CHECK-NEXT: } : (tensor<16xf32>, tensor<f32>) -> tensor<14xf32>
// CHECK-NEXT: return %0 : tensor<14xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<14xf32> {
  %0 = stablehlo.slice %a [2:16] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<16xf32>) -> tensor<14xf32>
  return %0 : tensor<14xf32>
}
