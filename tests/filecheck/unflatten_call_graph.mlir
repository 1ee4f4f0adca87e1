// RUN: sdy_opt %s -split-input-file -sdy-unflatten-call-graph | FileCheck %s
// RUN: sdy_opt %s -split-input-file -sdy-unflatten-call-graph='dedup-functions-fully=true' | FileCheck %s --check-prefix=DEDUP

sdy.mesh @mesh = <["p"=2, "q"=2]>

// Copies of a function with equal shardings are called under the name of the first; with the option, any of the copies, the
// one whose shardings pull ahead in the count of calls. The names of the originals are forgotten; nothing is removed.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0 = call @g(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}]>]>}
// CHECK-NEXT: %1 = call @g_0(%0)
// CHECK-NEXT: %2 = call @g_0(%1)
// CHECK-NEXT: %3 = call @g(%2)
// CHECK-NEXT: %4 = call @h(%3)
// DEDUP-LABEL: func.func @main(
// DEDUP-NEXT: %0 = call @g_1(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}]>]>}
// DEDUP-NEXT: %1 = call @g_1(%0)
// DEDUP-NEXT: %2 = call @g_1(%1)
// DEDUP-NEXT: %3 = call @g_1(%2)
// DEDUP-NEXT: %4 = call @h(%3)
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @g(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @g_0(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = call @g_1(%1) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = call @g_2(%2) : (tensor<8xf32>) -> tensor<8xf32>
  %4 = call @h(%3) : (tensor<8xf32>) -> tensor<8xf32>
  return %4 : tensor<8xf32>
}
// CHECK-LABEL: func.func private @g(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}) -> tensor<8xf32>
// DEDUP-LABEL: func.func private @g(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}) -> tensor<8xf32>
func.func private @g(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
// CHECK-LABEL: func.func private @g_0(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}]>}) -> tensor<8xf32>
// DEDUP-LABEL: func.func private @g_0(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}]>}) -> tensor<8xf32>
func.func private @g_0(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}]>}) -> tensor<8xf32> attributes {sdy.original_func_name = "g"} {
  return %arg0 : tensor<8xf32>
}
func.func private @g_1(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}]>}) -> tensor<8xf32> attributes {sdy.original_func_name = "g"} {
  return %arg0 : tensor<8xf32>
}
func.func private @g_2(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}) -> tensor<8xf32> attributes {sdy.original_func_name = "g"} {
  return %arg0 : tensor<8xf32>
}
func.func private @h(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}

// -----

// An absent sharding equals a fully open one beside another; the shardings of results count, and manual axes.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0 = call @f(%arg0, %arg0)
// CHECK-NEXT: %1 = call @f(%arg0, %0)
// CHECK-NEXT: %2 = call @f_1(%arg0, %1)
// CHECK-NEXT: %3 = call @f_2(%arg0, %2)
// DEDUP-LABEL: func.func @main(
// DEDUP-NEXT: %0 = call @f(%arg0, %arg0)
// DEDUP-NEXT: %1 = call @f(%arg0, %0)
// DEDUP-NEXT: %2 = call @f(%arg0, %1)
// DEDUP-NEXT: %3 = call @f_2(%arg0, %2)
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%arg0, %arg0) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = call @f_0(%arg0, %0) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %2 = call @f_1(%arg0, %1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = call @f_2(%arg0, %2) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}
func.func private @f(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}, %arg1: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
func.func private @f_0(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}) -> tensor<8xf32> attributes {sdy.original_func_name = "f"} {
  return %arg0 : tensor<8xf32>
}
func.func private @f_1(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}, %arg1: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}) attributes {sdy.original_func_name = "f"} {
  return %arg0 : tensor<8xf32>
}
func.func private @f_2(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}, %arg1: tensor<8xf32>) -> tensor<8xf32> attributes {sdy.func_manual_axes = #sdy<manual_axes{"q"}>, sdy.original_func_name = "f"} {
  return %arg0 : tensor<8xf32>
}
