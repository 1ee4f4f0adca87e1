// RUN: sdy_opt %s -split-input-file -sdy-resolve-single-device-sharding='partition-count=8' | FileCheck %s --check-prefixes=CHECK,PARTITION
// RUN: sdy_opt %s -split-input-file -sdy-resolve-single-device-sharding='replica-count=8' | FileCheck %s --check-prefixes=CHECK,REPLICA

// NEWER: there was no such pass
// The op runs on its device, on what was resharded to there; the sum of its result and zeros elsewhere is everywhere,
// and takes the place of reshards to that.
sdy.mesh @g = <["p"=4, "q"=2]>
sdy.mesh @device = <[], device_ids=[2]>
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@g, [{}, {}]>
// CHECK-NEXT: %1 = stablehlo.create_token
// PARTITION-NEXT: %2 = stablehlo.partition_id
// REPLICA-NEXT: %2 = stablehlo.replica_id
// CHECK-NEXT: %c = stablehlo.constant dense<2> : tensor<ui32>
// CHECK-NEXT: %3 = stablehlo.compare EQ, %2, %c
// CHECK-NEXT: %4:3 = "stablehlo.if"(%3) ({
// CHECK-NEXT: %11:3 = stablehlo.custom_call @foo(%0, %arg1, %0, %1) {note = 1 : i32} :
// CHECK-NEXT: stablehlo.return %11#0, %11#1, %11#2
// CHECK-NEXT: }, {
// CHECK-NEXT: %cst = stablehlo.constant dense<0.000000e+00> : tensor<8x4xf32>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<false> : tensor<4xi1>
// CHECK-NEXT: %11 = stablehlo.create_token
// CHECK-NEXT: stablehlo.return %cst, %c_0, %11
// CHECK-NEXT: })
// CHECK-NEXT: %5 = sdy.all_reduce {"p", "q"} %4#0 out_sharding=<@g, [{}, {}]>
// CHECK-NEXT: %6 = sdy.all_reduce {"p", "q"} %4#1 out_sharding=<@g, [{}]>
// CHECK-NEXT: %7 = sdy.reshard %5 <@g, [{}, {"p"}]>
// CHECK-NEXT: %8 = stablehlo.sine %5
// CHECK-NEXT: %9 = sdy.reshard %5 <@g, [{"q"}, {}]>
// CHECK-NEXT: %10 = stablehlo.add %8, %9
// CHECK-NEXT: return %7, %6, %4#2, %10
func.func @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@g, [{"p"}, {}]>}, %arg1: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xi1>, !stablehlo.token, tensor<8x4xf32>) {
  %0 = sdy.reshard %arg0 <@g, [{}, {}]> : tensor<8x4xf32>
  %1 = sdy.reshard %0 <@device, []> : tensor<8x4xf32>
  %2 = stablehlo.create_token : !stablehlo.token
  %3:3 = stablehlo.custom_call @foo(%1, %arg1, %1, %2) {note = 1 : i32, sdy.sharding = #sdy.sharding_per_value<[<@device, []>, <@g, [{}]>, <@g, []>]>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, !stablehlo.token) -> (tensor<8x4xf32>, tensor<4xi1>, !stablehlo.token)
  %4 = sdy.reshard %3#0 <@g, [{}, {}]> : tensor<8x4xf32>
  %5 = sdy.reshard %4 <@g, [{}, {"p"}]> : tensor<8x4xf32>
  %6 = stablehlo.sine %3#0 : tensor<8x4xf32>
  %7 = sdy.reshard %3#0 <@g, [{"q"}, {}]> : tensor<8x4xf32>
  %8 = stablehlo.add %6, %7 : tensor<8x4xf32>
  return %5, %3#1, %3#2, %8 : tensor<8x4xf32>, tensor<4xi1>, !stablehlo.token, tensor<8x4xf32>
}
// Zeros of every kind; a reshard that something else uses stays.
// CHECK-LABEL: func.func @zeros(
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@device, []>
// CHECK: stablehlo.custom_call @foo(%arg0) :
// CHECK: stablehlo.constant dense<(0.000000e+00,0.000000e+00)> : tensor<8xcomplex<f32>>
// CHECK: stablehlo.constant dense<0> : tensor<ui8>
// CHECK: stablehlo.custom_call @bar(%0)
func.func @zeros(%arg0: tensor<8xf32>) -> (tensor<8xcomplex<f32>>, tensor<ui8>) {
  %0 = sdy.reshard %arg0 <@device, []> : tensor<8xf32>
  %1:2 = stablehlo.custom_call @foo(%0) {sdy.sharding = #sdy.sharding_per_value<[<@device, []>, <@device, []>]>} : (tensor<8xf32>) -> (tensor<8xcomplex<f32>>, tensor<ui8>)
  stablehlo.custom_call @bar(%0) {has_side_effect = true} : (tensor<8xf32>) -> ()
  return %1#0, %1#1 : tensor<8xcomplex<f32>>, tensor<ui8>
}

// -----

// NEWER: there was no such pass
// Without a mesh with axes there is nobody to send results to.
sdy.mesh @device = <[], device_ids=[2]>
// CHECK-LABEL: func.func @alone(
// CHECK-NEXT: %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@device, []>]>}
// CHECK-NEXT: return %0
func.func @alone(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@device, []>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// NEWER: there was no such pass
// DIFFERS: the reference leaves an op whose results are tokens alone
// An op that gives tokens alone is on the device that they are on.
sdy.mesh @g = <["p"=8]>
sdy.mesh @device = <[], device_ids=[2]>
// CHECK-LABEL: func.func @tokens(
// CHECK: %[[FOUND:.*]] = "stablehlo.if"
// CHECK-NEXT: %[[TOKEN:.*]] = stablehlo.custom_call @foo(%arg0, %arg1) {has_side_effect = true} :
// CHECK-NEXT: stablehlo.return %[[TOKEN]] : !stablehlo.token
// CHECK-NEXT: }, {
// CHECK-NEXT: %[[OTHER:.*]] = stablehlo.create_token
// CHECK-NEXT: stablehlo.return %[[OTHER]] : !stablehlo.token
// CHECK-NEXT: }) : (tensor<i1>) -> !stablehlo.token
// CHECK-NEXT: return %[[FOUND]]
func.func @tokens(%arg0: !stablehlo.token, %arg1: tensor<8xf32>) -> !stablehlo.token {
  %0 = sdy.reshard %arg1 <@device, []> : tensor<8xf32>
  %1 = stablehlo.custom_call @foo(%arg0, %0) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@device, []>]>} : (!stablehlo.token, tensor<8xf32>) -> !stablehlo.token
  return %1 : !stablehlo.token
}
