// RUN: sdy_opt %s -canonicalize='enable-patterns=sdy-collective top-down=false' | FileCheck %s
// RUN: sdy_opt %s -canonicalize='enable-patterns=sdy-reshard' | FileCheck %s --check-prefix=RESHARD
// RUN: sdy_opt %s -canonicalize='enable-patterns=sdy-collective' | FileCheck %s --check-prefix=DOWN

sdy.mesh @mesh = <["a"=2, "b"=2]>

// A slice of a sum is a scattered sum; collectives over nothing go; equal constants become one, at the start.
// CHECK-LABEL: func.func @collectives(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>)
// CHECK-NEXT: %cst = stablehlo.constant dense<1.000000e+00>
// CHECK-NEXT: %0 = sdy.reduce_scatter [{"a"}, {}] %arg0 out_sharding=<@mesh, [{"a"}, {}]>
// CHECK-NEXT: %1 = stablehlo.add %cst, %cst
// CHECK-NEXT: return %0, %arg0, %1
// DOWN-LABEL: func.func @collectives(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>)
// DOWN-NEXT: %cst = stablehlo.constant dense<1.000000e+00>
// DOWN-NEXT: %0 = sdy.reduce_scatter [{"a"}, {}] %arg0 out_sharding=<@mesh, [{"a"}, {}]>
// DOWN-NEXT: %1 = stablehlo.add %cst, %cst
// DOWN-NEXT: return %0, %arg0, %1
func.func @collectives(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = sdy.all_reduce {"a"} %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %1 = sdy.all_slice [{"a"}, {}] %0 out_sharding=<@mesh, [{"a"}, {}]> : tensor<8x8xf32>
  %2 = sdy.all_gather [{}, {}] %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %3 = stablehlo.constant dense<1.0> : tensor<8x8xf32>
  %4 = stablehlo.constant dense<1.0> : tensor<8x8xf32>
  %5 = stablehlo.add %3, %4 : tensor<8x8xf32>
  %6 = stablehlo.sine %5 : tensor<8x8xf32>
  return %1, %2, %5 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// A reshard of a reshard that nothing else uses is one reshard.
// CHECK-LABEL: func.func @reshards(
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{"a"}, {}]>
// CHECK-NEXT: %1 = sdy.reshard %0 <@mesh, [{}, {"b"}]>
// CHECK-NEXT: return %1
// RESHARD-LABEL: func.func @reshards(
// RESHARD-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{}, {"b"}]>
// RESHARD-NEXT: return %0
func.func @reshards(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
  %1 = sdy.reshard %0 <@mesh, [{}, {"b"}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
