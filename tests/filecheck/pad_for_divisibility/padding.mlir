// RUN: sdy_opt %s -split-input-file -sdy-pad-for-divisibility | FileCheck %s

// NEWER: the pass did something else
// Padded where it is sliced, masked where it is summed, trimmed where it is gathered.
sdy.mesh @mesh = <["x"=2, "y"=4]>
// CHECK-LABEL: func.func @sum(
// CHECK: %[[P:.*]] = stablehlo.pad %arg0, {{.*}} high = [1, 2]
// CHECK-NEXT: %[[S:.*]] = sdy.all_slice [{"x"}, {"y"}] %[[P]] {{.*}} : tensor<8x12xf32>
// CHECK-NEXT: stablehlo.exponential %[[S]] {{.*}} : tensor<8x12xf32>
// CHECK: stablehlo.iota dim = 0
// CHECK-NEXT: stablehlo.constant dense<7>
// CHECK: stablehlo.select
// CHECK: stablehlo.reduce{{.*}} -> tensor<12xf32>
// CHECK: sdy.all_gather
// CHECK-NEXT: stablehlo.slice {{.*}} [0:10]
func.func @sum(%a: tensor<7x10xf32>) -> tensor<10xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = sdy.all_slice [{"x"}, {"y"}] %a out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<7x10xf32>
  %1 = stablehlo.exponential %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : tensor<7x10xf32>
  %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.add across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}], unreduced={"x"}>]>} : (tensor<7x10xf32>, tensor<f32>) -> tensor<10xf32>
  %3 = sdy.all_reduce {"x"} %2 out_sharding=<@mesh, [{"y"}]> : tensor<10xf32>
  %4 = sdy.all_gather [{"y"}] %3 out_sharding=<@mesh, [{}]> : tensor<10xf32>
  return %4 : tensor<10xf32>
}

// -----

// NEWER: the pass did something else
// Zeros stay zeros through a gather and a slice; what is known to be zero needs no mask.
sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @dot(
// CHECK-NOT: stablehlo.select
// CHECK: stablehlo.dot_general {{.*}} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
func.func @dot(%a: tensor<7x4xf32>) -> tensor<4x4xf32> {
  %0 = sdy.all_slice [{"x"}, {}] %a out_sharding=<@mesh, [{"x"}, {}]> : tensor<7x4xf32>
  %1 = stablehlo.dot_general %0, %0, contracting_dims = [0] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], unreduced={"x"}>]>} : (tensor<7x4xf32>, tensor<7x4xf32>) -> tensor<4x4xf32>
  %2 = sdy.all_reduce {"x"} %1 out_sharding=<@mesh, [{}, {}]> : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// -----

// NEWER: the pass did something else
// DIFFERS: the reference sums up what the padding holds
// The short form of a product is masked alike.
sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @short_dot(
// CHECK: %[[E:.*]] = stablehlo.exponential
// CHECK: %[[M:.*]] = stablehlo.select {{.*}}, %[[E]],
// CHECK: stablehlo.dot {{.*}} : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
func.func @short_dot(%a: tensor<7xf32>) -> tensor<f32> {
  %0 = sdy.all_slice [{"x"}] %a out_sharding=<@mesh, [{"x"}]> : tensor<7xf32>
  %1 = stablehlo.exponential %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<7xf32>
  %2 = stablehlo.dot %1, %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [], unreduced={"x"}>]>} : (tensor<7xf32>, tensor<7xf32>) -> tensor<f32>
  %3 = sdy.all_reduce {"x"} %2 out_sharding=<@mesh, []> : tensor<f32>
  return %3 : tensor<f32>
}

// -----

// NEWER: the pass did something else
// Private functions, loops and constants are padded alike.
sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @calls(
// CHECK: sdy.constant {{.*}} dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 0.000000e+00]> : tensor<4xf32>
// CHECK: call @g({{.*}}) {{.*}} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: func.func private @g(%arg0: tensor<4xf32>
func.func @calls() -> tensor<3xf32> {
  %0 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %1 = call @g(%0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<3xf32>) -> tensor<3xf32>
  %2 = sdy.all_gather [{"x"}] %1 out_sharding=<@mesh, [{}]> : tensor<3xf32>
  return %2 : tensor<3xf32>
}
func.func private @g(%a: tensor<3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = stablehlo.sine %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

// NEWER: the pass did something else
// DIFFERS: in the reference, updates that are padding go to the first row.
sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @scatter(
// CHECK: %[[BOUND:.*]] = stablehlo.constant dense<7> : tensor<1xi32>
// CHECK: stablehlo.broadcast_in_dim %[[BOUND]], dims = [1]
// CHECK-NEXT: %[[I:.*]] = stablehlo.select
// CHECK: "stablehlo.scatter"(%arg0, %[[I]],
func.func @scatter(%a: tensor<7xf32>, %i: tensor<5x1xi32>, %u: tensor<5xf32>) -> tensor<7xf32> {
  %j = sdy.all_slice [{"x"}, {}] %i out_sharding=<@mesh, [{"x"}, {}]> : tensor<5x1xi32>
  %v = sdy.all_slice [{"x"}] %u out_sharding=<@mesh, [{"x"}]> : tensor<5xf32>
  %0 = "stablehlo.scatter"(%a, %j, %v) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.multiply %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<7xf32>, tensor<5x1xi32>, tensor<5xf32>) -> tensor<7xf32>
  return %0 : tensor<7xf32>
}

// -----

// NEWER: the pass did something else
// A constant without elements has none when it is padded.
sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @empty(
// CHECK: stablehlo.constant {{.*}} dense<> : tensor<0x4xi64>
func.func @empty() -> tensor<0x3xi64> {
  %0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} dense<> : tensor<0x3xi64>
  %1 = sdy.all_gather [{}, {"x"}] %0 out_sharding=<@mesh, [{}, {}]> : tensor<0x3xi64>
  return %1 : tensor<0x3xi64>
}
