// RUN: sdy_opt %s -sdy-per-instruction-partitioning="rng-bit-generator-unsafe=false" | FileCheck %s

// NEWER: there was no such pass
// CHECK: sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<2xui64>) -> tensor<8xui64> {
// CHECK-NEXT: %0:2 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<2xui64>) {
// CHECK-NEXT: %output_state, %output = stablehlo.rng_bit_generator %arg1, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui64>)
// CHECK-NEXT: %1 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c = stablehlo.constant dense<[0, 4]> : tensor<2xi32>
// CHECK-NEXT: %2 = stablehlo.dynamic_slice %c, %1, sizes = [1] : (tensor<2xi32>, tensor<ui32>) -> tensor<1xi32>
// CHECK-NEXT: %3 = stablehlo.reshape %2 : (tensor<1xi32>) -> tensor<i32>
// CHECK-NEXT: %4 = stablehlo.dynamic_slice %output, %3, sizes = [4] : (tensor<8xui64>, tensor<i32>) -> tensor<4xui64>
// CHECK-NEXT: sdy.return %output_state, %4 : tensor<2xui64>, tensor<4xui64>
// CHECK-NEXT: } : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui64>)
// CHECK-NEXT: return %0#1 : tensor<8xui64>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<2xui64>) -> tensor<8xui64> {
  %0, %1 = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, [{"x"}]>]>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui64>)
  return %1 : tensor<8xui64>
}
