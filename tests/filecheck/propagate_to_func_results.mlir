// RUN: sdy_opt %s -split-input-file -sdy-propagate-to-func-results | FileCheck %s

// NEWER: before, main was left alone.
// Results of main get the sharding of the value if they have none; those of other functions take it in any case, or lose
// theirs. A sharding on one device is not taken.
sdy.mesh @mesh = <["p"=2, "q"=2]>
sdy.mesh @device = <[], device_ids=[0]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}]>}, %arg1: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}]>}, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}]>}, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}]>}, tensor<8xf32>)
// CHECK-NEXT: %0 = stablehlo.custom_call @host(%arg1) {sdy.sharding = #sdy.sharding_per_value<[<@device, []>]>}
// CHECK-NEXT: return %arg0, %arg0, %arg1, %0
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}]>}, %arg1: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}]>}, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}]>}, tensor<8xf32>) {
  %0 = stablehlo.custom_call @host(%arg1) {sdy.sharding = #sdy.sharding_per_value<[<@device, []>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %arg0, %arg0, %arg1, %0 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
// CHECK-LABEL: func.func private @other(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}]>}, %arg1: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}]>}, tensor<8xf32> {jax.result_info = "kept", sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}]>}, tensor<8xf32>)
// CHECK-NEXT: return %arg0, %arg0, %arg1
func.func private @other(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}]>}, %arg1: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}]>, jax.result_info = "kept"}, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}]>}) {
  return %arg0, %arg0, %arg1 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// Through an edge, and for a data-flow op that holds its own.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @main()
func.func @main() {
  return
}
// CHECK-LABEL: func.func @edges(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q", ?}]>})
func.func @edges(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}]>]>} %arg0 : tensor<8xf32>
  %1 = stablehlo.optimization_barrier %arg1 : tensor<8xf32>
  %2 = sdy.data_flow_edge %1 sharding=<@mesh, [{"q", ?}]> : tensor<8xf32>
  return %0, %2 : tensor<8xf32>, tensor<8xf32>
}

// -----

// DIFFERS: the reference crashes at a declaration; its results stay as they are.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @main()
func.func @main() {
  return
}
// CHECK: func.func private @declared(tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}]>})
func.func private @declared(tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}]>})
