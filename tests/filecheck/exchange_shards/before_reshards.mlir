// RUN: sdy_opt %s -split-input-file -pyshardy-exchange-shards='before-reshards=true' | FileCheck %s

// A slice is sharded as its operand is, and gathered then; what it is of would be more.
// CHECK: sdy.mesh @mesh = <["x"=8]>
// CHECK-LABEL: func.func @main(%arg0: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<16xf32> {
// CHECK-NEXT: %0 = stablehlo.slice %arg0 [4:20] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<64xf32>) -> tensor<16xf32>
// CHECK-NEXT: %1 = sdy.reshard %0 <@mesh, [{}]> : tensor<16xf32>
// CHECK-NEXT: return %1 : tensor<16xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=8]>
func.func @main(%a: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<16xf32> {
  %0 = stablehlo.slice %a [4:20] : (tensor<64xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// -----

// Joining a tensor with itself takes one permutation where moving it to another dimension and back sends more.
// CHECK: sdy.mesh @mesh = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<8x8xf32> {
// CHECK-NEXT: %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0, %cst) in_shardings=[<@mesh, [{}, {"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{}, {"x"}]>] manual_axes={"x"} (%arg1: tensor<8x2xf32>, %arg2: tensor<f32>) {
// CHECK-NEXT: %1 = stablehlo.pad %arg1, %arg2, low = [0, 2], high = [0, 2], interior = [0, 0] : (tensor<8x2xf32>, tensor<f32>) -> tensor<8x6xf32>
// CHECK-NEXT: %2 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %3 = stablehlo.convert %2 : (tensor<ui32>) -> tensor<i32>
// CHECK-NEXT: %c = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %4 = stablehlo.divide %3, %c : tensor<i32>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %5 = stablehlo.remainder %4, %c_0 : tensor<i32>
// CHECK-NEXT: %c_1 = stablehlo.constant dense<-2> : tensor<i32>
// CHECK-NEXT: %6 = stablehlo.multiply %5, %c_1 : tensor<i32>
// CHECK-NEXT: %c_2 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %7 = stablehlo.add %6, %c_2 : tensor<i32>
// CHECK-NEXT: %c_3 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %8 = stablehlo.dynamic_slice %1, %c_3, %7, sizes = [8, 4] : (tensor<8x6xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
// CHECK-NEXT: %9 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
// CHECK-NEXT: %10 = stablehlo.iota dim = 0 : tensor<4xi32>
// CHECK-NEXT: %c_4 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %11 = stablehlo.multiply %5, %c_4 : tensor<i32>
// CHECK-NEXT: %12 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: %c_5 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %13 = stablehlo.multiply %5, %c_5 : tensor<i32>
// CHECK-NEXT: %c_6 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %14 = stablehlo.add %13, %c_6 : tensor<i32>
// CHECK-NEXT: %15 = stablehlo.broadcast_in_dim %14, dims = [] : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: %16 = stablehlo.compare GE, %10, %12 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
// CHECK-NEXT: %17 = stablehlo.compare LT, %10, %15 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
// CHECK-NEXT: %18 = stablehlo.and %16, %17 : tensor<4xi1>
// CHECK-NEXT: %19 = stablehlo.broadcast_in_dim %18, dims = [1] : (tensor<4xi1>) -> tensor<8x4xi1>
// CHECK-NEXT: %20 = stablehlo.select %19, %8, %9 : tensor<8x4xi1>, tensor<8x4xf32>
// CHECK-NEXT: %21 = "stablehlo.collective_permute"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<{{\[\[}}0, 2], [1, 3], [2, 0], [3, 1{{\]\]}}> : tensor<4x2xi64>}> : (tensor<8x2xf32>) -> tensor<8x2xf32>
// CHECK-NEXT: %22 = stablehlo.pad %21, %arg2, low = [0, 2], high = [0, 2], interior = [0, 0] : (tensor<8x2xf32>, tensor<f32>) -> tensor<8x6xf32>
// CHECK-NEXT: %c_7 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %23 = stablehlo.multiply %5, %c_7 : tensor<i32>
// CHECK-NEXT: %c_8 = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %24 = stablehlo.dynamic_slice %22, %c_8, %23, sizes = [8, 4] : (tensor<8x6xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
// CHECK-NEXT: %25 = stablehlo.iota dim = 0 : tensor<4xi32>
// CHECK-NEXT: %c_9 = stablehlo.constant dense<-2> : tensor<i32>
// CHECK-NEXT: %26 = stablehlo.multiply %5, %c_9 : tensor<i32>
// CHECK-NEXT: %c_10 = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %27 = stablehlo.add %26, %c_10 : tensor<i32>
// CHECK-NEXT: %28 = stablehlo.broadcast_in_dim %27, dims = [] : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: %c_11 = stablehlo.constant dense<-2> : tensor<i32>
// CHECK-NEXT: %29 = stablehlo.multiply %5, %c_11 : tensor<i32>
// CHECK-NEXT: %c_12 = stablehlo.constant dense<4> : tensor<i32>
// CHECK-NEXT: %30 = stablehlo.add %29, %c_12 : tensor<i32>
// CHECK-NEXT: %31 = stablehlo.broadcast_in_dim %30, dims = [] : (tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT: %32 = stablehlo.compare GE, %25, %28 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
// CHECK-NEXT: %33 = stablehlo.compare LT, %25, %31 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
// CHECK-NEXT: %34 = stablehlo.and %32, %33 : tensor<4xi1>
// CHECK-NEXT: %35 = stablehlo.broadcast_in_dim %34, dims = [1] : (tensor<4xi1>) -> tensor<8x4xi1>
// CHECK-NEXT: %36 = stablehlo.select %35, %24, %20 : tensor<8x4xi1>, tensor<8x4xf32>
// CHECK-NEXT: sdy.return %36 : tensor<8x4xf32>
// CHECK-NEXT: } : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x8xf32>
// CHECK-NEXT: return %0 : tensor<8x8xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.concatenate %a, %a, dim = 1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// Operands that are sharded along another dimension stay so while they are joined.
// CHECK: sdy.mesh @mesh = <["x"=8]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x128xf32> {
// CHECK-NEXT: %0 = stablehlo.concatenate %arg0, %arg0, dim = 1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x128xf32>
// CHECK-NEXT: return %0 : tensor<8x128xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=8]>
func.func @main(%a: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x128xf32> {
  %0 = stablehlo.concatenate %a, %a, dim = 1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x128xf32>
  return %0 : tensor<8x128xf32>
}
