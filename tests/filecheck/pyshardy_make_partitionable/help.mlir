// RUN: sdy_opt %s -split-input-file -pyshardy-make-partitionable | FileCheck %s

// A barrier goes, and a reshard to a mesh with other axes goes by way of the whole tensor.
// CHECK: sdy.mesh @mesh = <["a"=2]>
// CHECK-NEXT: sdy.mesh @other = <["b"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{}]> : tensor<8xf32>
// CHECK-NEXT: %1 = stablehlo.reshape %0 : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %2 = sdy.reshard %1 <@other, [{"b"}]> : tensor<8xf32>
// CHECK-NEXT: return %2 : tensor<8xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["a"=2]>
sdy.mesh @other = <["b"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
  %0 = sdy.propagation_barrier %arg0 allowed_direction=NONE {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<8xf32>
  %1 = sdy.reshard %0 <@other, [{"b"}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// What is elementwise gets operands that are sharded alike.
// CHECK: sdy.mesh @mesh = <["a"=2, "b"=2]>
// CHECK-LABEL: func.func @pointwise(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}]>}) -> tensor<8xf32> {
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{"a", "b"}]> : tensor<8xf32>
// CHECK-NEXT: %1 = chlo.zeta %0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", "b"}]>]>} : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
// CHECK-NEXT: %2 = sdy.reshard %1 <@mesh, [{"a"}]> : tensor<8xf32>
// CHECK-NEXT: return %2 : tensor<8xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @pointwise(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}]>}) -> tensor<8xf32> {
  %0 = chlo.zeta %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// What else cannot run on shards gets whole tensors.
// CHECK: sdy.mesh @mesh = <["a"=2]>
// CHECK-LABEL: func.func @unknown(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{}]> : tensor<8xf32>
// CHECK-NEXT: %1 = stablehlo.custom_call @mine(%0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %2 = sdy.reshard %1 <@mesh, [{"a"}]> : tensor<8xf32>
// CHECK-NEXT: return %2 : tensor<8xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["a"=2]>
func.func @unknown(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @mine(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
