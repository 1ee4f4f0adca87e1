// RUN: sdy_opt %s -sdy-populate-op-sharding-rules | FileCheck %s
// RUN: sdy_opt %s -sdy-populate-op-sharding-rules='conservative-propagation=true' | FileCheck %s --check-prefix=CONSERVATIVE

// Every op with a rule gets it, inside regions too; one that has a rule keeps it. Ops without a rule get none.
// CHECK-LABEL: func.func @rules(
// CHECK-NEXT: %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=16, k=4} reduction={k}>}
// CHECK-NEXT: %1 = stablehlo.reshape %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([ij]) {i=8, j=4}>}
// CHECK-NEXT: %2 = stablehlo.reduce(%0 init: %arg2) applies stablehlo.add across dimensions = [1] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [])->([i]) {i=8, j=16} reduction={j}>}
// CHECK-NEXT: %3 = stablehlo.sine %0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, k]) {i=8, j=16, k=16}, custom>}
// CHECK-NEXT: %4 = stablehlo.optimization_barrier %3
// CHECK-NEXT: %5 = call @callee(%4)
// CHECK-NEXT: %c = stablehlo.constant dense<0>
// CHECK-NEXT: %6 = "stablehlo.case"(%c) ({
// CHECK-NEXT: %7 = stablehlo.transpose %0, dims = [1, 0] {sdy.sharding_rule = #sdy.op_sharding_rule<([j, i])->([i, j]) {i=16, j=8}>}
// CHECK-NEXT: %8 = stablehlo.transpose %7, dims = [1, 0] {sdy.sharding_rule = #sdy.op_sharding_rule<([j, i])->([i, j]) {i=8, j=16}>}
// CHECK-NEXT: stablehlo.return %8
// CHECK-NEXT: })
// CHECK-NEXT: return %1, %2, %6
func.func @rules(%arg0: tensor<8x4xf32>, %arg1: tensor<4x16xf32>, %arg2: tensor<f32>) -> (tensor<32xf32>, tensor<8xf32>, tensor<8x16xf32>) {
  %0 = stablehlo.dot %arg0, %arg1 : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %1 = stablehlo.reshape %arg0 : (tensor<8x4xf32>) -> tensor<32xf32>
  %2 = stablehlo.reduce(%0 init: %arg2) applies stablehlo.add across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  %3 = stablehlo.sine %0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, k]) {i=8, j=16, k=16}, custom>} : tensor<8x16xf32>
  %4 = stablehlo.optimization_barrier %3 : tensor<8x16xf32>
  %5 = func.call @callee(%4) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %6 = stablehlo.constant dense<0> : tensor<i32>
  %7 = "stablehlo.case"(%6) ({
    %8 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
    %9 = stablehlo.transpose %8, dims = [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>
    stablehlo.return %9 : tensor<8x16xf32>
  }) : (tensor<i32>) -> tensor<8x16xf32>
  return %1, %2, %7 : tensor<32xf32>, tensor<8xf32>, tensor<8x16xf32>
}

// A function is a list of ops: each is treated alike.
// CHECK-LABEL: func.func private @callee(
// CHECK-NEXT: %0 = stablehlo.reverse %arg0, dims = [0] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=16} permutation={i}>}
// CHECK-NEXT: %1 = sdy.reshard %0 <@mesh, [{}, {}]>
// CHECK-NEXT: %2 = sdy.sharding_constraint %1 <@mesh, [{?}, {?}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=16}>}
// CHECK-NEXT: return %2
func.func private @callee(%arg0: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = stablehlo.reverse %arg0, dims = [0] : tensor<8x16xf32>
  %1 = sdy.reshard %0 <@mesh, [{}, {}]> : tensor<8x16xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{?}, {?}]> : tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}

// Conservative rules block or leave out what would split a dimension.
// CHECK-LABEL: func.func @windows(
// CHECK-NEXT: %0 = stablehlo.concatenate %arg0, %arg0, dim = 1 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8} need_replication={j}>}
// CHECK-NEXT: %1 = stablehlo.slice %arg0 [0:4, 0:4] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4} permutation={i}>}
// CHECK-NEXT: %2 = stablehlo.pad %arg0, %arg1, low = [2, 0], high = [0, 0], interior = [0, 0] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [])->([i, j]) {i=8, j=4} permutation={i}>}
// CHECK-NEXT: return %0, %1, %2
// CONSERVATIVE-LABEL: func.func @windows(
// CONSERVATIVE-NEXT: %0 = stablehlo.concatenate %arg0, %arg0, dim = 1 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, k])->([i, l]) {i=8, j=1, k=1, l=1}>}
// CONSERVATIVE-NEXT: %1 = stablehlo.slice %arg0 [0:4, 0:4] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4} permutation={i} blocked_propagation={i}>}
// CONSERVATIVE-NEXT: %2 = stablehlo.pad %arg0, %arg1, low = [2, 0], high = [0, 0], interior = [0, 0] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [])->([i, j]) {i=8, j=4} permutation={i} blocked_propagation={i}>}
// CONSERVATIVE-NEXT: return %0, %1, %2
func.func @windows(%arg0: tensor<8x4xf32>, %arg1: tensor<f32>) -> (tensor<8x8xf32>, tensor<4x4xf32>, tensor<10x4xf32>) {
  %0 = stablehlo.concatenate %arg0, %arg0, dim = 1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.slice %arg0 [0:4, 0:4] : (tensor<8x4xf32>) -> tensor<4x4xf32>
  %2 = stablehlo.pad %arg0, %arg1, low = [2, 0], high = [0, 0], interior = [0, 0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<10x4xf32>
  return %0, %1, %2 : tensor<8x8xf32>, tensor<4x4xf32>, tensor<10x4xf32>
}
sdy.mesh @mesh = <["x"=2]>
