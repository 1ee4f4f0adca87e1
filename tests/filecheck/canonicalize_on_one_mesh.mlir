// RUN: sdy_opt %s -canonicalize='enable-patterns=pyshardy-reshard' | FileCheck %s
// RUN: sdy_opt %s -canonicalize='enable-patterns=sdy-reshard' | FileCheck %s --check-prefix=ALL

sdy.mesh @mesh = <["a"=2, "b"=4]>
sdy.mesh @other = <["z"=8]>
sdy.mesh @device = <[], device_ids=[3]>

// On one mesh two reshards are one.
// CHECK-LABEL: func.func @one_mesh(
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{}, {"b"}]>
// CHECK-NEXT: return %0
func.func @one_mesh(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{}, {}]> : tensor<8x8xf32>
  %1 = sdy.reshard %0 <@mesh, [{}, {"b"}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// The way to another mesh leads through the whole tensor.
// CHECK-LABEL: func.func @two_meshes(
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{}, {}]>
// CHECK-NEXT: %1 = sdy.reshard %0 <@other, [{"z"}, {}]>
// CHECK-NEXT: return %1
// ALL-LABEL: func.func @two_meshes(
// ALL-NEXT: %0 = sdy.reshard %arg0 <@other, [{"z"}, {}]>
// ALL-NEXT: return %0
func.func @two_meshes(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{}, {}]> : tensor<8x8xf32>
  %1 = sdy.reshard %0 <@other, [{"z"}, {}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// So does the way to a single device, and from there.
// CHECK-LABEL: func.func @single_device(
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{}, {}]>
// CHECK-NEXT: %1 = sdy.reshard %0 <@device, []>
// CHECK-NEXT: %2 = stablehlo.negate %1
// CHECK-NEXT: %3 = sdy.reshard %2 <@mesh, [{}, {}]>
// CHECK-NEXT: %4 = sdy.reshard %3 <@mesh, [{}, {"b"}]>
// CHECK-NEXT: return %4
func.func @single_device(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{}, {}]> : tensor<8x8xf32>
  %1 = sdy.reshard %0 <@device, []> : tensor<8x8xf32>
  %2 = stablehlo.negate %1 {sdy.sharding = #sdy.sharding_per_value<[<@device, []>]>} : tensor<8x8xf32>
  %3 = sdy.reshard %2 <@mesh, [{}, {}]> : tensor<8x8xf32>
  %4 = sdy.reshard %3 <@mesh, [{}, {"b"}]> : tensor<8x8xf32>
  return %4 : tensor<8x8xf32>
}

// A value that passes a single device on the way back to its mesh does not have to.
// CHECK-LABEL: func.func @past_a_device(
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{}, {}]>
// CHECK-NEXT: return %0
func.func @past_a_device(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.reshard %arg0 <@device, []> : tensor<8x8xf32>
  %1 = sdy.reshard %0 <@mesh, [{}, {}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
