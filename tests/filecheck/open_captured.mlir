// RUN: sdy_opt %s -pyshardy-open-captured | FileCheck %s

// CHECK: func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %arg1: tensor<8xf32>, %arg2: tensor<i32>) -> tensor<8xf32> {
// CHECK-NEXT: %c = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT: %0 = sdy.sharding_constraint %arg0 <@mesh, [{?}]> : tensor<8xf32>
// CHECK-NEXT: %1:2 = stablehlo.while(%iterArg = %c, %iterArg_1 = %arg1) : tensor<i32>, tensor<8xf32>
// CHECK-NEXT: cond {
// CHECK-NEXT: %2 = stablehlo.compare LT, %iterArg, %arg2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT: stablehlo.return %2 : tensor<i1>
// CHECK-NEXT: } do {
// CHECK-NEXT: %2 = stablehlo.add %iterArg, %c_0 : tensor<i32>
// CHECK-NEXT: %3 = stablehlo.multiply %iterArg_1, %0 : tensor<8xf32>
// CHECK-NEXT: stablehlo.return %2, %3 : tensor<i32>, tensor<8xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %1#1 : tensor<8xf32>
// CHECK-NEXT: }

sdy.mesh @mesh = <["a"=2]>
func.func @main(%w: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %x: tensor<8xf32>, %n: tensor<i32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<8xf32>
    cond {
      %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.add %i, %one : tensor<i32>
      %2 = stablehlo.multiply %y, %w : tensor<8xf32>
      stablehlo.return %1, %2 : tensor<i32>, tensor<8xf32>
    }
  return %0#1 : tensor<8xf32>
}
