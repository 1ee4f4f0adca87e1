// RUN: sdy_opt %s -split-input-file -sdy-resolve-permutation-factors='enable-halo-exchange=false rng-bit-generator-unsafe=false' | FileCheck %s

// NEWER: the pass did something else
sdy.mesh @mesh = <["x"=2, "y"=4]>
// CHECK-LABEL: func.func @slice(
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{}, {"x"}]>
// CHECK-NEXT: %1 = stablehlo.slice %0 [3:14, 0:9] {{.*}}<@mesh, [{}, {"x"}]>
// CHECK-NEXT: %2 = sdy.reshard %1 <@mesh, [{"y"}, {"x"}]>
func.func @slice(%a: tensor<16x10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) -> tensor<11x9xf32> {
  %0 = stablehlo.slice %a [3:14, 0:9] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<16x10xf32>) -> tensor<11x9xf32>
  return %0 : tensor<11x9xf32>
}

// -----

// NEWER: the pass did something else
// A kernel as long as the input, with padding, needs all of it: the result is not partial any more.
sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @convolution(
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{}, {}, {}]>
// CHECK-NEXT: %1 = sdy.reshard %arg1 <@mesh, [{}, {}, {}]>
// CHECK-NEXT: %2 = stablehlo.convolution(%0, %1)
// CHECK-NOT: unreduced
// CHECK-NEXT: return %2
func.func @convolution(%a: tensor<1x8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>}, %k: tensor<8x3x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>}) -> tensor<1x3x4xf32> {
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}, {}], unreduced={"x"}>]>} : (tensor<1x8x3xf32>, tensor<8x3x4xf32>) -> tensor<1x3x4xf32>
  %1 = sdy.all_reduce {"x"} %0 out_sharding=<@mesh, [{}, {}, {}]> : tensor<1x3x4xf32>
  return %1 : tensor<1x3x4xf32>
}

// -----

// NEWER: the pass did something else
// Random numbers that do not depend on the sharding.
sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @random(
// CHECK-NEXT: %output_state, %output = stablehlo.rng_bit_generator {{.*}}<@mesh, [{}]>, <@mesh, [{}]>
// CHECK-NEXT: %0 = sdy.reshard %output <@mesh, [{"x"}]>
func.func @random(%s: tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>) {
  %0, %1 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, [{"x"}]>]>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)
  return %0, %1 : tensor<2xui64>, tensor<8xui32>
}

// -----

// NEWER: the pass did something else
// One element, wherever it goes, is on one device; every device needs to have it.
sdy.mesh @mesh = <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @update(
// CHECK-NEXT: %0 = sdy.reshard %arg1 <@mesh, [{}]> : tensor<1xf32>
// CHECK-NEXT: %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2 {{.*}}<@mesh, [{"x"}]>
// CHECK-NEXT: return %1
func.func @update(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %u: tensor<1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}, %i: tensor<i32>) -> tensor<4xf32> {
  %0 = stablehlo.dynamic_update_slice %a, %u, %i {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// NEWER: the pass did something else
// All that an op works on is on one mesh, also what needs nothing else.
sdy.mesh @mesh = <["x"=2, "y"=2]>
sdy.mesh @backwards = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>
// CHECK-LABEL: func.func @other_order(
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{}, {"y"}]>
// CHECK-NEXT: %1 = sdy.reshard %arg1 <@mesh, [{}, {"y"}]>
// CHECK-NEXT: %2 = stablehlo.dynamic_update_slice %0, %1, %arg2, %arg2 {{.*}}<@mesh, [{}, {"y"}]>
// CHECK-NEXT: %3 = sdy.reshard %2 <@backwards, [{"x"}, {"y"}]>
// CHECK-NEXT: return %3
func.func @other_order(%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@backwards, [{"x"}, {"y"}]>}, %u: tensor<2x8xf32> {sdy.sharding = #sdy.sharding<@backwards, [{}, {"y"}]>}, %i: tensor<i32> {sdy.sharding = #sdy.sharding<@mesh, []>}) -> tensor<4x8xf32> {
  %0 = stablehlo.dynamic_update_slice %a, %u, %i, %i {sdy.sharding = #sdy.sharding_per_value<[<@backwards, [{"x"}, {"y"}]>]>} : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// NEWER: the pass did something else
// Where the operand is on every device, no device needs data of another one, however the result is sharded.
sdy.mesh @mesh = <["x"=2, "y"=3]>
// CHECK-LABEL: func.func @whole_operand(
// CHECK: stablehlo.pad {{.*}}<@mesh, [{"x"}, {}]>
// CHECK-NEXT: stablehlo.dynamic_update_slice {{.*}}<@mesh, [{"x"}, {"y"}]>
// CHECK-NEXT: %[[U:.*]] = sdy.reshard %arg2 <@mesh, [{}, {}]>
// CHECK-NEXT: stablehlo.dynamic_update_slice %arg1, %[[U]], {{.*}}<@mesh, [{"x"}, {}]>
// CHECK-NEXT: return
func.func @whole_operand(%a: tensor<3x12xf32>, %b: tensor<6x12xf32>, %u: tensor<2x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %v: tensor<2x12xf32>, %i: tensor<i32>) {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %a, %c, low = [0, 0], high = [2, 0], interior = [0, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<3x12xf32>, tensor<f32>) -> tensor<5x12xf32>
  %1 = stablehlo.dynamic_update_slice %b, %v, %i, %i {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : (tensor<6x12xf32>, tensor<2x12xf32>, tensor<i32>, tensor<i32>) -> tensor<6x12xf32>
  %2 = stablehlo.dynamic_update_slice %b, %u, %i, %i {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<6x12xf32>, tensor<2x12xf32>, tensor<i32>, tensor<i32>) -> tensor<6x12xf32>
  return
}
