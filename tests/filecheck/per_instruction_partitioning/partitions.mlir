// RUN: sdy_opt %s -sdy-per-instruction-partitioning="partition-count=2" | FileCheck %s

// NEWER: there was no such pass
// CHECK: sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<6xf32> {
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<4xf32>) {
// CHECK-NEXT: %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %c = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<5> : tensor<i32>
// CHECK-NEXT: %c_1 = stablehlo.constant dense<-1> : tensor<i32>
// CHECK-NEXT: %c_2 = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT: %1 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %2 = stablehlo.convert %1 : (tensor<ui32>) -> tensor<i32>
// CHECK-NEXT: %3 = "stablehlo.collective_permute"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<{{\[\[}}1, 0{{\]\]}}> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %4 = stablehlo.compare LT, %2, %c_2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT: %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %6 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<i1>) -> tensor<4xi1>
// CHECK-NEXT: %7 = stablehlo.select %6, %3, %5 : tensor<4xi1>, tensor<4xf32>
// CHECK-NEXT: %8 = stablehlo.concatenate %arg1, %7, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
// CHECK-NEXT: %9 = stablehlo.pad %8, %cst, low = [3], high = [3], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<14xf32>
// CHECK-NEXT: %10 = stablehlo.multiply %2, %c_1 : tensor<i32>
// CHECK-NEXT: %11 = stablehlo.add %10, %c_0 : tensor<i32>
// CHECK-NEXT: %12 = stablehlo.maximum %11, %c : tensor<i32>
// CHECK-NEXT: %13 = stablehlo.dynamic_slice %9, %12, sizes = [3] : (tensor<14xf32>, tensor<i32>) -> tensor<3xf32>
// CHECK-NEXT: sdy.return %13 : tensor<3xf32>
// CHECK-NEXT: } : (tensor<8xf32>) -> tensor<6xf32>
// CHECK-NEXT: return %0 : tensor<6xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<6xf32> {
  %0 = stablehlo.slice %arg0 [2:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}
