// RUN: sdy_opt %s -sdy-propagation-pipeline | FileCheck %s
// RUN: sdy_opt %s -sdy-propagation-pipeline='dedup-functions-fully=true' | FileCheck %s --check-prefix=DEDUP

// Each call is propagated by itself, and calls that end with the same shardings share a function again. With the option
// there is one function for all calls, and reshards on the way in.
// NEWER: before, results of main without a sharding did not take that of the value.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"q"}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"q"}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {}]>})
// CHECK-NEXT: %0 = call @block(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}, {}]>]>}
// CHECK-NEXT: %1 = call @block_0(%arg1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"q"}]>]>}
// CHECK-NEXT: %2 = call @block(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}, {}]>]>}
// CHECK-NEXT: return %0, %1, %2
// DEDUP-LABEL: func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"q"}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {"q"}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {"q"}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {"q"}]>})
// DEDUP-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{"p"}, {"q"}]>
// DEDUP-NEXT: %1 = sdy.reshard %arg1 <@mesh, [{"p"}, {"q"}]>
// DEDUP-NEXT: %2 = sdy.reshard %arg0 <@mesh, [{"p"}, {"q"}]>
// DEDUP-NEXT: %3 = call @block(%2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}, {"q"}]>]>}
// DEDUP-NEXT: %4 = call @block(%1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}, {"q"}]>]>}
// DEDUP-NEXT: %5 = call @block(%0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}, {"q"}]>]>}
// DEDUP-NEXT: return %3, %4, %5
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"q"}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = call @block(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = call @block(%arg1) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = call @block(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
func.func private @block(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.cosine %arg0 : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
// CHECK-LABEL: func.func private @block(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {}]>})
// CHECK-NEXT: %0 = stablehlo.cosine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}, {}]>]>}
// CHECK-NEXT: return %0
// DEDUP-LABEL: func.func private @block(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {"q"}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {"q"}]>})
// DEDUP-NEXT: %0 = stablehlo.cosine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}, {"q"}]>]>}
// DEDUP-NEXT: return %0
// CHECK-LABEL: func.func private @block_0(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"q"}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"q"}]>})
// CHECK-NEXT: %0 = stablehlo.cosine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"q"}]>]>}
// CHECK-NEXT: return %0
// CHECK-NOT: func.func
// DEDUP-NOT: func.func
