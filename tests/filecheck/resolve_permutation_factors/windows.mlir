// RUN: sdy_opt %s -split-input-file -sdy-resolve-permutation-factors='exchange-windows=true' | FileCheck %s

// NEWER: the pass did something else
// Neighbours send the borders of their shards, along the axis of the rows alone; the last device gets zeros from nobody.
// CHECK-LABEL: func.func @convolution(
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"y"}, {"x"}, {}]>, <@mesh, [{}, {}, {}]>] out_shardings=[<@mesh, [{"y"}, {"x"}, {}]>] manual_axes={"x"}
// CHECK: %1 = stablehlo.slice %arg2 [0:4, 3:4, 0:3] {{.*}}<@mesh, [{"y"}, {}, {}]>
// CHECK-NEXT: %2 = "stablehlo.collective_permute"(%1) {{.*}}dense<{{\[\[}}0, 2], [1, 3{{\]\]}}>
// CHECK-NEXT: %3 = stablehlo.slice %arg2 [0:4, 0:1, 0:3]
// CHECK-NEXT: %4 = "stablehlo.collective_permute"(%3) {{.*}}dense<{{\[\[}}2, 0], [3, 1{{\]\]}}>
// CHECK-NEXT: %5 = stablehlo.concatenate %2, %arg2, %4, dim = 1
// CHECK-NEXT: %6 = stablehlo.convolution(%5, %arg3) {{.*}}pad = {{\[\[}}0, 0{{\]\]}}{{.*}} -> tensor<4x4x4xf32>
// CHECK-NEXT: sdy.return %6
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @convolution(%a: tensor<4x8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}, {}]>}, %k: tensor<3x3x4xf32>) -> tensor<4x8x4xf32> {
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}, {}]>]>} : (tensor<4x8x3xf32>, tensor<3x3x4xf32>) -> tensor<4x8x4xf32>
  return %0 : tensor<4x8x4xf32>
}

// -----

// NEWER: the pass did something else
// A window of one element needs nothing of others.
// CHECK-LABEL: func.func @one_by_one(
// CHECK-NOT: collective_permute
// CHECK: stablehlo.convolution(%arg2, %arg3) {{.*}} (tensor<1x4x3xf32>, tensor<1x3x4xf32>) -> tensor<1x4x4xf32>
sdy.mesh @mesh = <["x"=2]>
func.func @one_by_one(%a: tensor<1x8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>}, %k: tensor<1x3x4xf32>) -> tensor<1x8x4xf32> {
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}, {}]>]>} : (tensor<1x8x3xf32>, tensor<1x3x4xf32>) -> tensor<1x8x4xf32>
  return %0 : tensor<1x8x4xf32>
}

// -----

// NEWER: the pass did something else
// Every device sums up over its part of the kernel; the sum is completed behind.
// CHECK-LABEL: func.func @kernel(
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{}, {"x"}, {}]>, <@mesh, [{"x"}, {}, {}]>] out_shardings=[<@mesh, [{}, {}, {}], unreduced={"x"}>] manual_axes={"x"}
// CHECK-COUNT-2: "stablehlo.collective_permute"({{.*}}) {{.*}}: (tensor<1x1x3xf32>)
// CHECK: stablehlo.convolution({{.*}}) {{.*}} (tensor<1x6x3xf32>, tensor<4x3x4xf32>) -> tensor<1x3x4xf32>
// CHECK: sdy.all_reduce {"x"} %0
sdy.mesh @mesh = <["x"=2]>
func.func @kernel(%a: tensor<1x8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>}, %k: tensor<8x3x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>}) -> tensor<1x3x4xf32> {
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}, {}], unreduced={"x"}>]>} : (tensor<1x8x3xf32>, tensor<8x3x4xf32>) -> tensor<1x3x4xf32>
  %1 = sdy.all_reduce {"x"} %0 out_sharding=<@mesh, [{}, {}, {}]> : tensor<1x3x4xf32>
  return %1 : tensor<1x3x4xf32>
}

// -----

// NEWER: the pass did something else
// Sizes that do not divide: behind the data is what changes no maximum, and windows begin at other places of every shard.
// CHECK-LABEL: func.func @maximum(
// CHECK: %0 = stablehlo.pad %arg0, %cst_0, low = [0], high = [1], interior = [0]
// CHECK: %[[SENT:.*]] = stablehlo.slice %arg1 [4:5]
// CHECK-NEXT: %[[GOT:.*]] = "stablehlo.collective_permute"(%[[SENT]]) {{.*}}dense<{{\[\[}}0, 1{{\]\]}}>
// CHECK: %[[MASKED:.*]] = stablehlo.select {{.*}}, %[[GOT]],
// CHECK-NEXT: %[[JOINED:.*]] = stablehlo.concatenate %[[MASKED]], %arg1, dim = 0
// CHECK: %[[KEPT:.*]] = stablehlo.dynamic_slice %[[JOINED]], {{.*}}, sizes = [5]
// CHECK-NEXT: "stablehlo.reduce_window"(%[[KEPT]], %arg2)
sdy.mesh @mesh = <["x"=2]>
func.func @maximum(%a: tensor<9xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %i) <{window_dimensions = array<i64: 3>, window_strides = array<i64: 2>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = stablehlo.maximum %p, %q : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<9xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// NEWER: the pass did something else
// Windows that need all that is in front of them: a gather moves no more than an exchange.
// CHECK-LABEL: func.func @running_sum(
// CHECK: %0 = sdy.reshard %arg0 <@mesh, [{}]>
// CHECK-NEXT: sdy.manual_computation(%0, %cst) in_shardings=[<@mesh, [{}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}]>]
// CHECK: %[[PADDED:.*]] = stablehlo.pad %arg1, {{.*}}, low = [7], high = [0]
// CHECK: %[[KEPT:.*]] = stablehlo.dynamic_slice %[[PADDED]], {{.*}}, sizes = [11]
// CHECK-NEXT: "stablehlo.reduce_window"(%[[KEPT]], %arg2)
sdy.mesh @mesh = <["x"=2]>
func.func @running_sum(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %i = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %i) <{window_dimensions = array<i64: 8>, padding = dense<[[7, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// NEWER: the pass did something else
// The source is not gathered: windows do not reach over borders.
// CHECK-LABEL: func.func @scatter(
// CHECK-NOT: sdy.reshard
// CHECK: sdy.manual_computation(%arg0, %arg1, %cst) in_shardings=[<@mesh, [{"x"}]>, <@mesh, [{"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}]>]
// CHECK-NOT: collective_permute
// CHECK: "stablehlo.select_and_scatter"(%arg2, %arg3, %arg4)
sdy.mesh @mesh = <["x"=2]>
func.func @scatter(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %i = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = sdy.reshard %b <@mesh, [{}]> : tensor<4xf32>
  %0 = "stablehlo.select_and_scatter"(%a, %1, %i) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %s : tensor<i1>
  }, {
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// NEWER: the pass did something else
// Only the kernel is gathered, with a warning.
// CHECK-LABEL: func.func @gathered(
// CHECK-NEXT: %0 = sdy.reshard %arg1 <@mesh, [{}, {}, {}]>
// CHECK-NEXT: sdy.manual_computation(%arg0, %0)
// CHECK-COUNT-2: "stablehlo.collective_permute"
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @gathered(%a: tensor<1x8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>}, %k: tensor<3x3x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}, {}]>}) -> tensor<1x8x4xf32> {
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}, {}]>]>} : (tensor<1x8x3xf32>, tensor<3x3x4xf32>) -> tensor<1x8x4xf32>
  return %0 : tensor<1x8x4xf32>
}
