// RUN: sdy_opt %s -split-input-file -verify-diagnostics -sdy-convert-global-to-local='enable-rgv3=false'

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @left_over(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{has no meaning on one device; earlier passes remove such ops}}
  %0 = sdy.reshard %arg0 <@m, [{}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference ends its process
sdy.mesh @m = <["x"=2, "y"=2]>
// expected-error@+1 {{has a value of type tensor<7xf32> that is sharded <@m, [{"x"}]>; needed sizes that are multiples of the number of shards, as sdy-pad-for-divisibility makes them}}
func.func @indivisible(%arg0: tensor<7xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference ends its process
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @nothing_to_gather(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{}]>}) -> tensor<8xf32> {
  // expected-error@+1 {{does nothing; canonicalize{enable-patterns=sdy-collective} removes such ops}}
  %0 = sdy.all_gather [{}] %arg0 out_sharding=<@m, [{}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference ends its process
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @nothing_to_scatter(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{does nothing; canonicalize{enable-patterns=sdy-collective} removes such ops}}
  %0 = sdy.reduce_scatter [{}] %arg0 out_sharding=<@m, [{}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference ends its process
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @nothing_to_permute(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  // expected-error@+1 {{does nothing; canonicalize{enable-patterns=sdy-collective} removes such ops}}
  %0 = sdy.collective_permute %arg0 out_sharding=<@m, [{"x"}]> : tensor<8xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference runs it on shards
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @unknown(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  // expected-error@+1 {{is sharded, and it is not known how to run it on shards; reshard its operands and results to be replicated, or give it a sharding rule}}
  %0 = stablehlo.custom_call @foo(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference runs it on shards
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @whole_matrices(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"x"}]>}) {
  // expected-error@+1 {{works on whole matrices, which are sharded; reshard its operands and results to be replicated, or give it a sharding rule}}
  %0 = stablehlo.custom_call @Cholesky(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {"x"}]>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference sorts every shard
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @sort(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  // expected-error@+1 {{has operands and results that are sharded in ways that do not go together: <@m, [{"x"}]>, <@m, [{"x"}]>; sdy-insert-explicit-reshards makes them agree}}
  %0 = "stablehlo.sort"(%arg0) <{dimension = 0 : i64}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %1 = stablehlo.compare LT, %arg1, %arg2 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference takes what is at a place for what is at another
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @other_axes(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  // expected-error@+1 {{has operands and results that are sharded in ways that do not go together: <@m, [{"x"}]>, <@m, [{"y"}]>; sdy-insert-explicit-reshards makes them agree}}
  %0 = stablehlo.abs %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"y"}]>]>} : tensor<8xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference takes what is on a device for what is on another
sdy.mesh @m = <["x"=2, "y"=2]>
sdy.mesh @n = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>
func.func @other_devices(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  // expected-error@+1 {{has tensors on different devices, <@m, [{"x"}]> and <@n, [{"x"}]>; a reshard must come in between}}
  %0 = stablehlo.abs %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@n, [{"x"}]>]>} : tensor<8xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference reverses every shard in its place
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @reverse(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  // expected-error@+1 {{has dimension 0 of its result on other devices than reversing it there gives; sdy-resolve-permutation-factors chooses them}}
  %0 = stablehlo.reverse %arg0, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : tensor<8xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference convolves every shard
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @convolution(%arg0: tensor<1x8x1xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"x"}, {}]>}, %arg1: tensor<3x1x1xf32>) {
  // expected-error@+1 {{is sharded along factor j of its rule, along which elements would have to move between devices; sdy-resolve-permutation-factors takes care of that}}
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {"x"}, {}]>]>} : (tensor<1x8x1xf32>, tensor<3x1x1xf32>) -> tensor<1x8x1xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @concatenate(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  // expected-error@+1 {{joins along dimension 0, along which the result is sharded}}
  %0 = stablehlo.concatenate %arg0, %arg0, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @slice(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  // expected-error@+1 {{cuts dimension 0, which is sharded, in a way that takes elements from other devices; sdy-resolve-permutation-factors brings them}}
  %0 = stablehlo.slice %arg0 [2:6] {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference takes every third element of every shard
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @strided(%arg0: tensor<10xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  // expected-error@+1 {{takes every 3-th element along dimension 0 of shards of 5 elements}}
  %0 = stablehlo.slice %arg0 [0:10:3] {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (tensor<10xf32>) -> tensor<4xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @dynamic_slice(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<i32>) {
  // expected-error@+1 {{cuts dimension 0, which is sharded, in a way that takes elements from other devices; sdy-resolve-permutation-factors brings them}}
  %0 = stablehlo.dynamic_slice %arg0, %arg1, sizes = [4] {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (tensor<8xf32>, tensor<i32>) -> tensor<4xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @update_across(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<2xf32>, %arg2: tensor<i32>) {
  // expected-error@+1 {{updates 2 elements along dimension 0, which is sharded, that may be on several devices; a reshard must replicate that dimension before}}
  %0 = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @sharded_update(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg2: tensor<i32>) {
  // expected-error@+1 {{has an update that is sharded along dimension 0, of which it covers a part only}}
  %0 = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference ends its process
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @window(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<f32>) {
  // expected-error@+1 {{has windows along dimension 0, which is sharded, that may be on several devices}}
  %0 = "stablehlo.reduce_window"(%arg0, %arg1) <{window_dimensions = array<i64: 3>, padding = dense<1> : tensor<1x2xi64>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %1 = stablehlo.add %arg2, %arg3 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @set(%arg0: tensor<8xf32>, %arg1: tensor<4x1xi32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}, %arg2: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  // expected-error@+1 {{has updates that are sharded and combines them with the old values by more than one plain op; a reshard must replicate the updates before}}
  %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    stablehlo.return %arg4 : tensor<f32>
  }) {sdy.sharding_rule = #sdy.op_sharding_rule<([i], [j, k], [j])->([i]) {i=8, j=4, k=1} reduction={j}>, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, sdy.sharding = #sdy.sharding_per_value<[<@m, [{}]>]>} : (tensor<8xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference ends its process
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @half_marked(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x", "y"}]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x", "y"}]>}) {
  // expected-error@+1 {{gives results that are partial along {"x", "y"}, of which some users complete only a part}}
  %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@m, [], unreduced={"x"}>]>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  // expected-note@+1 {{uses the partial result}}
  %1 = stablehlo.abs %0 : tensor<f32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference takes what is at a place for what is at another
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @manual(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<8xf32> {
  // expected-error@+1 {{passes on a value that is sharded <@m, [{"x"}]> to where it is sharded <@m, [{"y"}]>}}
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@m, [{"y"}]>] out_shardings=[<@m, [{}]>] manual_axes={"y"} (%arg1: tensor<4xf32>) {
    %1 = stablehlo.custom_call @foo(%arg1) : (tensor<4xf32>) -> tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference runs it on shards
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @sizes(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<2xi32>) {
  // expected-error@+1 {{is sharded, and it is not known how to run it on shards; reshard its operands and results to be replicated, or give it a sharding rule}}
  %0 = stablehlo.dynamic_broadcast_in_dim %arg0, %arg1, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}, {}]>]>} : (tensor<4xf32>, tensor<2xi32>) -> tensor<4x?xf32>
  return
}
