// RUN: sdy_opt %s -sdy-basic-propagate | FileCheck %s
// RUN: sdy_opt %s -sdy-basic-propagate='keep-sharding-rules=true' | FileCheck %s --check-prefix=RULES
// RUN: sdy_opt %s -sdy-basic-propagate='conservative-propagation=true' | FileCheck %s --check-prefix=CONSERVATIVE

// Conservative propagation takes no axis that it would have to split.
sdy.mesh @mesh = <["p"=4, "q"=4]>
// CHECK-LABEL: func.func @reshape(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q"}, {}]>}) -> (tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q":(1)2, ?}]>})
// CHECK-NEXT: %0 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", "q":(1)2, ?}]>]>}
// CHECK-NEXT: %1 = stablehlo.sine %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", "q":(1)2, ?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=32}, custom>}
// CHECK-NEXT: return %1
// RULES-LABEL: func.func @reshape(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q"}, {}]>}) -> (tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q":(1)2, ?}]>})
// RULES-NEXT: %0 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", "q":(1)2, ?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([ij]) {i=8, j=4}>}
// RULES-NEXT: %1 = stablehlo.sine %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", "q":(1)2, ?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=32}, custom>}
// RULES-NEXT: return %1
// CONSERVATIVE-LABEL: func.func @reshape(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q"}, {}]>}) -> (tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}]>})
// CONSERVATIVE-NEXT: %0 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}]>]>}
// CONSERVATIVE-NEXT: %1 = stablehlo.sine %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=32}, custom>}
// CONSERVATIVE-NEXT: return %1
func.func @reshape(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q"}, {}]>}) -> tensor<32xf32> {
  %0 = stablehlo.reshape %arg0 : (tensor<8x4xf32>) -> tensor<32xf32>
  %1 = stablehlo.sine %0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=32}, custom>} : tensor<32xf32>
  return %1 : tensor<32xf32>
}
