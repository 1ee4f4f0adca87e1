// RUN: sdy_opt %s -sdy-drop-sharding-rules | FileCheck %s

// Rules go, wherever the op is, but for those that a user gave.
// CHECK-LABEL: func.func @rules(
// CHECK-NEXT: %0 = stablehlo.sine %arg0 {note = 1 : i32}
// CHECK-NEXT: %1 = stablehlo.cosine %0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}, custom>}
// CHECK-NEXT: %2 = "stablehlo.case"(%arg1) ({
// CHECK-NEXT: %3 = stablehlo.negate %1
// CHECK-NEXT: stablehlo.return %3
// CHECK-NEXT: })
// CHECK-NEXT: return %2
func.func @rules(%arg0: tensor<8xf32>, %arg1: tensor<i32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %arg0 {note = 1 : i32, sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}>} : tensor<8xf32>
  %1 = stablehlo.cosine %0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}, custom>} : tensor<8xf32>
  %2 = "stablehlo.case"(%arg1) ({
    %3 = stablehlo.negate %1 {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}>} : tensor<8xf32>
    stablehlo.return %3 : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}
