// RUN: sdy_opt %s -split-input-file -pyshardy-import-spmd-regions | FileCheck %s

// Two regions that have nothing to do with each other are two computations; a constant goes with its users, also into
// a branch; what needs a result before the end of the region comes behind it; the id of the partition is local.
// CHECK: sdy.mesh @mesh = <["x"=2]>
// CHECK-NEXT: func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg2: tensor<i1>) -> (tensor<8xf32>, tensor<8xf32>) {
// CHECK-NEXT: %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
// CHECK-NEXT: %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %1 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %c = stablehlo.constant dense<true> : tensor<i1>
// CHECK-NEXT: sdy.manual_computation(%arg1) in_shardings=[<@mesh, [{}]>] out_shardings=[] manual_axes={"x"} (%arg3: tensor<8xf32>) {
// CHECK-NEXT: %c_0 = stablehlo.constant dense<true> : tensor<i1>
// CHECK-NEXT: %5 = "stablehlo.if"(%c_0) ({
// CHECK-NEXT: %6 = stablehlo.add %arg3, %arg3 : tensor<8xf32>
// CHECK-NEXT: stablehlo.return %6 : tensor<8xf32>
// CHECK-NEXT: }, {
// CHECK-NEXT: %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<8xf32>
// CHECK-NEXT: stablehlo.return %cst_1 : tensor<8xf32>
// CHECK-NEXT: }) : (tensor<i1>) -> tensor<8xf32>
// CHECK-NEXT: sdy.return
// CHECK-NEXT: } : (tensor<8xf32>) -> ()
// CHECK-NEXT: %2:2 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>, <@mesh, [{"x"}]>] manual_axes={"x"} (%arg3: tensor<4xf32>) {
// CHECK-NEXT: %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
// CHECK-NEXT: %5 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT: %6 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT: %7 = stablehlo.multiply %arg3, %5 : tensor<4xf32>
// CHECK-NEXT: %8 = stablehlo.custom_call @roll(%arg3, %6) : (tensor<4xf32>, tensor<ui32>) -> tensor<4xf32>
// CHECK-NEXT: sdy.return %7, %8 : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: } : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK-NEXT: %3 = stablehlo.tanh %2#0 : tensor<8xf32>
// CHECK-NEXT: %4 = stablehlo.add %3, %2#1 : tensor<8xf32>
// CHECK-NEXT: return %4, %4 : tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %y: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %p: tensor<i1>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c = stablehlo.constant dense<2.0> : tensor<f32>
  %two = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %id = stablehlo.partition_id : tensor<ui32>
  %0 = stablehlo.custom_call @SPMDFullToShardShape(%x) {mhlo.frontend_attributes = {xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22}>"}} : (tensor<8xf32>) -> tensor<4xf32>
  %1 = stablehlo.custom_call @SPMDFullToShardShape(%y) {mhlo.frontend_attributes = {xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22}>"}} : (tensor<8xf32>) -> tensor<8xf32>
  %2 = stablehlo.multiply %0, %two : tensor<4xf32>
  %3 = stablehlo.custom_call @SPMDShardToFullShape(%2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<4xf32>) -> tensor<8xf32>
  %4 = stablehlo.tanh %3 : tensor<8xf32>
  %5 = stablehlo.custom_call @roll(%0, %id) : (tensor<4xf32>, tensor<ui32>) -> tensor<4xf32>
  %q = stablehlo.constant dense<true> : tensor<i1>
  %6 = "stablehlo.if"(%q) ({
    %9 = stablehlo.add %1, %1 : tensor<8xf32>
    stablehlo.return %9 : tensor<8xf32>
  }, {
    %10 = stablehlo.constant dense<0.0> : tensor<8xf32>
    stablehlo.return %10 : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  %7 = stablehlo.custom_call @SPMDShardToFullShape(%5) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<4xf32>) -> tensor<8xf32>
  %8 = stablehlo.add %4, %7 : tensor<8xf32>
  return %8, %8 : tensor<8xf32>, tensor<8xf32>
}

// -----

// A region in a function that is manual already, and one that begins with nothing.
// CHECK: sdy.mesh @mesh = <["x"=2, "y"=2]>
// CHECK-NEXT: func.func private @body(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<4xf32>) {
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"y"}]>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} (%arg1: tensor<4xf32>) {
// CHECK-NEXT: sdy.return %arg1 : tensor<4xf32>
// CHECK-NEXT: } : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %1 = sdy.manual_computation() in_shardings=[] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} () {
// CHECK-NEXT: %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
// CHECK-NEXT: %2 = stablehlo.tanh %cst : tensor<2xf32>
// CHECK-NEXT: %3 = stablehlo.custom_call @Sharding(%2) {mhlo.frontend_attributes = {xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22, \22y\22}>"}} : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT: sdy.return %3 : tensor<2xf32>
// CHECK-NEXT: } : () -> tensor<4xf32>
// CHECK-NEXT: return %0, %1 : tensor<8xf32>, tensor<4xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func private @body(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<4xf32>) {
  %0 = stablehlo.custom_call @Sharding(%x) {mhlo.frontend_attributes = {xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22}>"}, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.frontend_attributes = {xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22, \22y\22}>"}} : (tensor<8xf32>) -> tensor<4xf32>
  %2 = stablehlo.custom_call @SPMDShardToFullShape(%1) {mhlo.frontend_attributes = {xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22}>"}, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : (tensor<4xf32>) -> tensor<8xf32>
  %3 = stablehlo.constant dense<1.0> : tensor<2xf32>
  %4 = stablehlo.tanh %3 : tensor<2xf32>
  %5 = stablehlo.custom_call @Sharding(%4) {mhlo.frontend_attributes = {xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22, \22y\22}>"}} : (tensor<2xf32>) -> tensor<2xf32>
  %6 = stablehlo.custom_call @SPMDShardToFullShape(%5) {mhlo.frontend_attributes = {xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22}>"}, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : (tensor<2xf32>) -> tensor<4xf32>
  return %2, %6 : tensor<8xf32>, tensor<4xf32>
}
