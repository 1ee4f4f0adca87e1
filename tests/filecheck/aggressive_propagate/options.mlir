// RUN: sdy_opt %s -sdy-aggressive-propagate='propagation-strategy=basic' | FileCheck %s --check-prefix=BASIC
// RUN: sdy_opt %s -sdy-aggressive-propagate='propagation-strategy=basic-then-aggressive' | FileCheck %s --check-prefix=THEN
// RUN: sdy_opt %s -sdy-aggressive-propagate='propagation-strategy=aggressive keep-sharding-rules=true' | FileCheck %s --check-prefix=AGGRESSIVE
// RUN: sdy_opt %s -sdy-aggressive-propagate='conservative-propagation=true' | FileCheck %s --check-prefix=CONSERVATIVE

// The basic strategy gives the axis that all agree on to everybody first; the aggressive one resolves conflicts at once.
sdy.mesh @mesh = <["p"=4, "q"=4]>
// BASIC-LABEL: func.func @strategies(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q"}, {?}]>}, %arg1: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q"}]>}) -> (tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>}, tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q":(1)2, ?}, {"q":(2)2, ?}]>})
// BASIC-NEXT: %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>}
// BASIC-NEXT: %1 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", "q":(1)2, ?}, {"q":(2)2, ?}]>]>}
// BASIC-NEXT: return %0, %1
// THEN-LABEL: func.func @strategies(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q"}, {?}]>}, %arg1: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q"}]>}) -> (tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q", ?}, {?}]>}, tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q":(1)2, ?}, {"q":(2)2, ?}]>})
// THEN-NEXT: %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", "q", ?}, {?}]>]>}
// THEN-NEXT: %1 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", "q":(1)2, ?}, {"q":(2)2, ?}]>]>}
// THEN-NEXT: return %0, %1
// AGGRESSIVE-LABEL: func.func @strategies(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q"}, {?}]>}, %arg1: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q"}]>}) -> (tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q", ?}, {?}]>}, tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q":(1)2, ?}, {"q":(2)2, ?}]>})
// AGGRESSIVE-NEXT: %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", "q", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=16, j=16, k=16} reduction={k}>}
// AGGRESSIVE-NEXT: %1 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", "q":(1)2, ?}, {"q":(2)2, ?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([ij, k])->([i, jk]) {i=8, j=2, k=16}>}
// AGGRESSIVE-NEXT: return %0, %1
// CONSERVATIVE-LABEL: func.func @strategies(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q"}, {?}]>}, %arg1: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q"}]>}) -> (tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q", ?}, {?}]>}, tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>})
// CONSERVATIVE-NEXT: %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", "q", ?}, {?}]>]>}
// CONSERVATIVE-NEXT: %1 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>}
// CONSERVATIVE-NEXT: return %0, %1
func.func @strategies(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q"}, {?}]>}, %arg1: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q"}]>}) -> (tensor<16x16xf32>, tensor<8x32xf32>) {
  %0 = stablehlo.dot %arg0, %arg1 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = stablehlo.reshape %arg0 : (tensor<16x16xf32>) -> tensor<8x32xf32>
  return %0, %1 : tensor<16x16xf32>, tensor<8x32xf32>
}
