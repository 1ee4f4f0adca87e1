// RUN: sdy_opt %s -split-input-file -pyshardy-add-hlo-rules | FileCheck %s

// Ops that HLO alone has; a rule that is there stays.
// CHECK: func.func @main(%arg0: tensor<8x4xf32>) {
// CHECK-NEXT: %0 = mhlo.sinh %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4}>} : tensor<8x4xf32>
// CHECK-NEXT: %1 = mhlo.acosh %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4}>} : tensor<8x4xf32>
// CHECK-NEXT: %2 = mhlo.copy %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, k]) {i=8, j=4, k=4}, custom>} : tensor<8x4xf32>
// CHECK-NEXT: %3 = mhlo.tanh %arg0 : tensor<8x4xf32>
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func @main(%x: tensor<8x4xf32>) {
  %0 = mhlo.sinh %x : tensor<8x4xf32>
  %1 = mhlo.acosh %x : tensor<8x4xf32>
  %2 = mhlo.copy %x {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, k]) {i=8, j=4, k=4}, custom>} : tensor<8x4xf32>
  %3 = mhlo.tanh %x : tensor<8x4xf32>
  return
}
