// RUN: sdy_opt %s -sdy-aggressive-propagate | FileCheck %s

// A conflict is resolved in each tensor by itself, in favour of the factor that comes from the largest tensor.
sdy.mesh @mesh = <["p"=2, "q"=4]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p"}]>}, %arg2: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}, %arg3: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p"}]>}, %arg4: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p"}]>}, %arg5: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>}, tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p", ?}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>})
// CHECK-NEXT: %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>}
// CHECK-NEXT: %1 = stablehlo.dot %arg2, %arg3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"p", ?}]>]>}
// CHECK-NEXT: %2 = stablehlo.dot %arg4, %arg5 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>}
// CHECK-NEXT: return %0, %1, %2
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p"}]>},
                %arg2: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}, %arg3: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p"}]>},
                %arg4: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p"}]>}, %arg5: tensor<8x8xf32>)
    -> (tensor<8x8xf32>, tensor<8x16xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.dot %arg0, %arg1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.dot %arg2, %arg3 : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %2 = stablehlo.dot %arg4, %arg5 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1, %2 : tensor<8x8xf32>, tensor<8x16xf32>, tensor<8x8xf32>
}

// In element-wise ops the more sharded factor goes first, and nothing goes sideways beyond what the result takes.
// CHECK-LABEL: func.func @elementwise(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q", "p"}]>}, %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {"q"}]>}, %arg3: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q", ?}]>}, %arg4: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x16xf32>)
// CHECK-NEXT: %0 = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"q", "p", ?}]>]>}
// CHECK-NEXT: %1 = stablehlo.add %arg2, %arg3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"q", ?}]>]>}
// CHECK-NEXT: %2 = stablehlo.concatenate %arg2, %arg4, dim = 1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"q", ?}]>]>}
// CHECK-NEXT: return %0, %1, %2
func.func @elementwise(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q", "p"}]>},
                       %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {"q"}]>}, %arg3: tensor<8x8xf32>, %arg4: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x16xf32>) {
  %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
  %1 = stablehlo.add %arg2, %arg3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {?}]>]>} : tensor<8x8xf32>
  %2 = stablehlo.concatenate %arg2, %arg4, dim = 1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {?}]>]>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x16xf32>
  return %0, %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x16xf32>
}

// Three operands: each ends with what it can take.
// CHECK-LABEL: func.func @clamp(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q"}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q", ?}, {?}]>}, %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q"}]>}) -> tensor<8x8xf32>
// CHECK-NEXT: %0 = stablehlo.clamp %arg0, %arg1, %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", "q", ?}, {?}]>]>}
// CHECK-NEXT: return %0
func.func @clamp(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q"}, {?}]>}, %arg1: tensor<8x8xf32>, %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q"}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.clamp %arg0, %arg1, %arg2 : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
