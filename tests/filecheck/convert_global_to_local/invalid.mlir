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
  // expected-error@+1 {{is sharded, and it is unknown how to run it on shards; reshard its operands and results to be replicated, or give it a sharding rule}}
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
  // expected-error@+1 {{has operands and results that are sharded incompatibly: <@m, [{"x"}]>, <@m, [{"x"}]>; sdy-insert-explicit-reshards reshards them}}
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
  // expected-error@+1 {{has operands and results that are sharded incompatibly: <@m, [{"x"}]>, <@m, [{"y"}]>; sdy-insert-explicit-reshards reshards them}}
  %0 = stablehlo.abs %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"y"}]>]>} : tensor<8xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference takes what is on a device for what is on another
sdy.mesh @m = <["x"=2, "y"=2]>
sdy.mesh @n = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>
func.func @other_devices(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  // expected-error@+1 {{has tensors on different devices, <@m, [{"x"}]> and <@n, [{"x"}]>; reshard one of them first}}
  %0 = stablehlo.abs %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@n, [{"x"}]>]>} : tensor<8xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference reverses every shard in its place
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @reverse(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  // expected-error@+1 {{has dimension 0 of its result on other devices than the reversal puts it; run sdy-resolve-permutation-factors first}}
  %0 = stablehlo.reverse %arg0, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : tensor<8xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference convolves every shard
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @convolution(%arg0: tensor<1x8x1xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"x"}, {}]>}, %arg1: tensor<3x1x1xf32>) {
  // expected-error@+1 {{is sharded along factor j of its rule, along which elements would have to move between devices; run sdy-resolve-permutation-factors first}}
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {"x"}, {}]>]>} : (tensor<1x8x1xf32>, tensor<3x1x1xf32>) -> tensor<1x8x1xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @concatenate(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  // expected-error@+1 {{concatenates along dimension 0, along which the result is sharded}}
  %0 = stablehlo.concatenate %arg0, %arg0, dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @slice(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  // expected-error@+1 {{cuts dimension 0, which is sharded, in a way that takes elements from other devices; run sdy-resolve-permutation-factors first}}
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
  // expected-error@+1 {{cuts dimension 0, which is sharded, in a way that takes elements from other devices; run sdy-resolve-permutation-factors first}}
  %0 = stablehlo.dynamic_slice %arg0, %arg1, sizes = [4] {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (tensor<8xf32>, tensor<i32>) -> tensor<4xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @update_across(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<2xf32>, %arg2: tensor<i32>) {
  // expected-error@+1 {{updates 2 elements along dimension 0, which is sharded, that may be on several devices; replicate that dimension by a reshard first}}
  %0 = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @sharded_update(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<2xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg2: tensor<i32>) {
  // expected-error@+1 {{has an update that is sharded along dimension 0 but covers only a part of it}}
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
  // expected-error@+1 {{has updates that are sharded and combines them with the old values by more than one op; replicate the updates by a reshard first}}
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
  // expected-error@+1 {{gives results that are partial along {"x", "y"}, but some users complete only some of these axes}}
  %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@m, [], unreduced={"x"}>]>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  // expected-note@+1 {{uses the partial result}}
  %1 = stablehlo.abs %0 : tensor<f32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference ends its process
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @half_marked_and_unused(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x", "y"}]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x", "y"}]>}) {
  // expected-error@+1 {{gives results that are partial along {"x", "y"}, but is marked as partial along {"x"}}}
  %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@m, [], unreduced={"x"}>]>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference takes what is at a place for what is at another
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @manual(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<8xf32> {
  // expected-error@+1 {{passes on a value with sharding <@m, [{"x"}]> where the sharding must be <@m, [{"y"}]>}}
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
  // expected-error@+1 {{is sharded, and it is unknown how to run it on shards; reshard its operands and results to be replicated, or give it a sharding rule}}
  %0 = stablehlo.dynamic_broadcast_in_dim %arg0, %arg1, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}, {}]>]>} : (tensor<4xf32>, tensor<2xi32>) -> tensor<4x?xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @parts(%arg0: tensor<8x3xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) -> tensor<8x3xf32> {
  // expected-error@+1 {{splits dimension 1 of tensor<4x3xf32> into 2 parts of equal size}}
  %0 = sdy.all_to_all [{"x"}: 0->1] %arg0 out_sharding=<@m, [{}, {"x"}]> : tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference accepts it
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @incomplete(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  // expected-error@+1 {{gives results that are partial along "x"; sdy-insert-explicit-reshards with mark-partial-result-with-unreduced-axes=true completes them}}
  %0 = stablehlo.custom_call @foo(%arg0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([]) {i=8} reduction={i}>} : (tensor<8xf32>) -> tensor<f32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference ends its process
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @groups(%arg0: tensor<1x8x6xf32>, %arg1: tensor<1x2x6xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {}, {"x"}]>}) {
  // expected-error@+1 {{has feature_group_count 3, which 2 shards do not divide}}
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 3 : i64, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k], [l, m, n])->([i, j, n]) {i=1, j=8, k=6, l=1, m=2, n=6}>, sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {}, {"x"}]>]>} : (tensor<1x8x6xf32>, tensor<1x2x6xf32>) -> tensor<1x8x6xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference ends its process
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @gather(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<3x1xi32>) {
  // expected-error@+1 {{takes 4 of 8 elements along dimension 0 of its operand, which is sharded; needed one element or all}}
  %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 4>}> {sdy.sharding_rule = #sdy.op_sharding_rule<([i], [j, k])->([j, l]) {i=8, j=3, k=1, l=4} reduction={i}>} : (tensor<8xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference ends its process
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @pad(%arg0: tensor<6xf32>, %arg1: tensor<f32>) {
  // expected-error@+1 {{has a sharded result and an operand that is not sharded; reshard one of them first}}
  %0 = stablehlo.pad %arg0, %arg1, low = [1], high = [1], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (tensor<6xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference ends its process
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @state(%arg0: tensor<2xui64> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  // expected-error@+1 {{has a state that is sharded}}
  %0, %1 = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>, <@m, [{"x"}]>]>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference ends its process
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @short_state(%arg0: tensor<16xui8>) {
  // expected-error@+1 {{has a state of ui8 and sharded results; needed 32 or 64 bit integers}}
  %0, %1 = stablehlo.rng_bit_generator %arg0, algorithm = DEFAULT {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}]>, <@m, [{"x"}]>]>} : (tensor<16xui8>) -> (tensor<16xui8>, tensor<8xui32>)
  return
}

// -----

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @no_identity(%arg0: tensor<8xf32>, %arg1: tensor<4x1xi32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}, %arg2: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  // expected-error@+1 {{has updates that are sharded and combines them by subtract, which has no identity value}}
  %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.subtract %a, %b : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) {sdy.sharding_rule = #sdy.op_sharding_rule<([i], [j, k], [j])->([i]) {i=8, j=4, k=1} reduction={j}>, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, sdy.sharding = #sdy.sharding_per_value<[<@m, [{}]>]>} : (tensor<8xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference accepts it
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @windows(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<3x1xi32>, %arg2: tensor<3x4xf32>) {
  // expected-error@+1 {{updates 4 elements along dimension 0 of its input, which is sharded; needed one element or all}}
  %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) {sdy.sharding_rule = #sdy.op_sharding_rule<([i], [j, k], [j, l])->([i]) {i=8, j=3, k=1, l=4}>, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (tensor<8xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<8xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference accepts it
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @some_partial(%arg0: tensor<8xf32>, %arg1: tensor<4x1xi32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}, %arg2: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  // expected-error@+1 {{has results of which only some stay partial}}
  %0:2 = "stablehlo.scatter"(%arg0, %arg0, %arg1, %arg2, %arg2) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
    %1 = stablehlo.add %a, %c : tensor<f32>
    %2 = stablehlo.add %b, %d : tensor<f32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, sdy.sharding = #sdy.sharding_per_value<[<@m, [{}], unreduced={"x"}>, <@m, [{}]>]>} : (tensor<8xf32>, tensor<8xf32>, tensor<4x1xi32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @other_axes_of_a_slice(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  // expected-error@+1 {{has dimension 0 sharded by ["x"] and by ["y"]; run sdy-insert-explicit-reshards first}}
  %0 = stablehlo.slice %arg0 [0:4] {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"y"}]>]>} : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference ends its process
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @offsets() -> (tensor<4294967296xi8> {sdy.sharding = #sdy.sharding<@m, [{"x", "y"}]>}) {
  // expected-error@+1 {{has a shard that begins at 3221225472; offsets must fit into 32 bits}}
  %0 = stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x", "y"}]>]>} : tensor<4294967296xi8>
  return %0 : tensor<4294967296xi8>
}

// -----

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["a"=6, "b"=4]>
func.func @more_takers_than_holders(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"b":(1)2}, {"b":(2)2}]>}) -> tensor<4x4xf32> {
  // expected-error@+1 {{sending every shard to one device: got parts of an axis that do not fit each other, so that some shards have more holders than receivers, needed as many holders as receivers of every shard}}
  %0 = sdy.collective_permute %arg0 out_sharding=<@m, [{"a":(1)2}, {"a":(3)2}]> : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference gives the size of a shard
sdy.mesh @m = <["x"=2]>
func.func @size(%arg0: tensor<4294967296xi8> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<i32> {
  // expected-error@+1 {{computing positions in shards: got 4294967296, needed at most 32 bits, as programs count positions with so many}}
  %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<4294967296xi8>) -> tensor<i32>
  return %0 : tensor<i32>
}

// -----

// NEWER: tables, groups and special treatment are others
sdy.mesh @m = <["x"=2]>
func.func @dynamic(%arg0: tensor<?xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> (tensor<?xf32> {sdy.sharding = #sdy.sharding<@m, [{}], unreduced={"x"}>}) {
  // expected-error@+1 {{making a constant: got tensor<?xf32>, needed a static shape}}
  %0 = sdy.sharded_to_unreduced [{"x"}] %arg0 out_sharding=<@m, [{}], unreduced={"x"}> : tensor<?xf32>
  return %0 : tensor<?xf32>
}
