// RUN: sdy_opt %s -split-input-file -sdy-apply-sharding-constraints | FileCheck %s

sdy.mesh @mesh = <["p"=2, "q"=2]>

// Behind a chain of constraints on a free value, its later uses in the block take the end of the chain; the return of main
// keeps the value itself.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0 = stablehlo.exponential %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}, {}]>]>}
// CHECK-NEXT: %1 = sdy.sharding_constraint %0 <@mesh, [{"p"}, {}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>}
// CHECK-NEXT: %2 = sdy.sharding_constraint %1 <@mesh, [{}, {"q"}]>
// CHECK-NEXT: %3 = stablehlo.negate %2
// CHECK-NEXT: return %0, %3
func.func @main(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.exponential %arg0 : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"p"}, {}]> : tensor<8x8xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{}, {"q"}]> : tensor<8x8xf32>
  %3 = stablehlo.negate %0 : tensor<8x8xf32>
  return %0, %3 : tensor<8x8xf32>, tensor<8x8xf32>
}

// No chain: one constraint alone; one with a second user in between; another constraint on the value, or behind the end.
// CHECK-LABEL: func.func private @no_chain(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {}]>}, %arg2: tensor<8x8xf32>, %arg3: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {}]>})
// CHECK-NEXT: %0 = sdy.sharding_constraint %arg0 <@mesh, [{"p"}, {}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>}
// CHECK-NEXT: %1 = stablehlo.add %arg0, %0
// CHECK-NEXT: %2 = sdy.sharding_constraint %arg1 <@mesh, [{"p"}, {}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>}
// CHECK-NEXT: %3 = sdy.sharding_constraint %2 <@mesh, [{"q"}, {}]>
// CHECK-NEXT: %4 = stablehlo.add %arg1, %2
// CHECK-NEXT: %5 = sdy.sharding_constraint %arg2 <@mesh, [{"p"}, {}]>
// CHECK-NEXT: %6 = sdy.sharding_constraint %5 <@mesh, [{"q"}, {}]>
// CHECK-NEXT: %7 = sdy.sharding_constraint %arg2 <@mesh, [{?}, {"q"}]>
// CHECK-NEXT: %8 = stablehlo.add %arg2, %6
// CHECK-NEXT: %9 = sdy.sharding_constraint %arg3 <@mesh, [{"p"}, {}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>}
// CHECK-NEXT: %10 = sdy.sharding_constraint %9 <@mesh, [{"q"}, {}]>
// CHECK-NEXT: %11 = sdy.sharding_constraint %10 <@mesh, [{"p"}, {}]>
// CHECK-NEXT: %12 = sdy.sharding_constraint %10 <@mesh, [{"q"}, {}]>
// CHECK-NEXT: %13 = stablehlo.add %arg3, %11
// CHECK-NEXT: return
func.func private @no_chain(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<8x8xf32>, %arg3: tensor<8x8xf32>) {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"p"}, {}]> : tensor<8x8xf32>
  %1 = stablehlo.add %arg0, %0 : tensor<8x8xf32>

  %2 = sdy.sharding_constraint %arg1 <@mesh, [{"p"}, {}]> : tensor<8x8xf32>
  %3 = sdy.sharding_constraint %2 <@mesh, [{"q"}, {}]> : tensor<8x8xf32>
  %4 = stablehlo.add %arg1, %2 : tensor<8x8xf32>

  %5 = sdy.sharding_constraint %arg2 <@mesh, [{"p"}, {}]> : tensor<8x8xf32>
  %6 = sdy.sharding_constraint %5 <@mesh, [{"q"}, {}]> : tensor<8x8xf32>
  %7 = sdy.sharding_constraint %arg2 <@mesh, [{?}, {"q"}]> : tensor<8x8xf32>
  %8 = stablehlo.add %arg2, %6 : tensor<8x8xf32>

  %9 = sdy.sharding_constraint %arg3 <@mesh, [{"p"}, {}]> : tensor<8x8xf32>
  %10 = sdy.sharding_constraint %9 <@mesh, [{"q"}, {}]> : tensor<8x8xf32>
  %11 = sdy.sharding_constraint %10 <@mesh, [{"p"}, {}]> : tensor<8x8xf32>
  %12 = sdy.sharding_constraint %10 <@mesh, [{"q"}, {}]> : tensor<8x8xf32>
  %13 = stablehlo.add %arg3, %11 : tensor<8x8xf32>
  return
}

// -----

// NEWER: before, returns of all functions kept the value.
// In other functions the return is a use like any other; what is in a region is no later use in the block.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func private @chain(
// CHECK-NEXT: %0 = stablehlo.exponential %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}, {}]>]>}
// CHECK-NEXT: %1 = stablehlo.sine %0
// CHECK-NEXT: %2 = sdy.sharding_constraint %0 <@mesh, [{"p"}, {}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>}
// CHECK-NEXT: %3 = sdy.sharding_constraint %2 <@mesh, [{?}, {?}]>
// CHECK-NEXT: %4 = sdy.sharding_constraint %3 <@mesh, [{}, {"q", ?}]>
// CHECK-NEXT: %5 = stablehlo.add %4, %4
// CHECK-NEXT: %6 = "stablehlo.if"(%arg1) ({
// CHECK-NEXT: stablehlo.return %0
// CHECK-NEXT: }, {
// CHECK-NEXT: stablehlo.return %5
// CHECK-NEXT: })
// CHECK-NEXT: return %6, %4
func.func private @chain(%arg0: tensor<8x8xf32>, %arg1: tensor<i1>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.exponential %arg0 : tensor<8x8xf32>
  %1 = stablehlo.sine %0 : tensor<8x8xf32>
  %2 = sdy.sharding_constraint %0 <@mesh, [{"p"}, {}]> : tensor<8x8xf32>
  %3 = sdy.sharding_constraint %2 <@mesh, [{?}, {?}]> : tensor<8x8xf32>
  %4 = sdy.sharding_constraint %3 <@mesh, [{}, {"q", ?}]> : tensor<8x8xf32>
  %5 = stablehlo.add %0, %4 : tensor<8x8xf32>
  %6 = "stablehlo.if"(%arg1) ({
    stablehlo.return %0 : tensor<8x8xf32>
  }, {
    stablehlo.return %5 : tensor<8x8xf32>
  }) : (tensor<i1>) -> tensor<8x8xf32>
  return %6, %0 : tensor<8x8xf32>, tensor<8x8xf32>
}

// CHECK-LABEL: func.func @main()
func.func @main() {
  return
}
