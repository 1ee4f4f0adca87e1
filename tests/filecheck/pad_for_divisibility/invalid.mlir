// RUN: sdy_opt %s -split-input-file -verify-diagnostics -sdy-pad-for-divisibility

// NEWER: the pass did something else
// expected-error@+2 {{has argument 0 of type tensor<7xf32> sharded as <@mesh, [{"x"}]>, which is not divisible; try -sdy-update-non-divisible-input-output-shardings first}}
sdy.mesh @mesh = <["x"=2]>
func.func @argument(%a: tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  return
}

// -----

// NEWER: the pass did something else
sdy.mesh @mesh = <["x"=2]>
func.func @unsharded(%a: tensor<7xf32>) -> tensor<7xf32> {
  %0 = sdy.all_slice [{"x"}] %a out_sharding=<@mesh, [{"x"}]> : tensor<7xf32>
  // expected-error@+1 {{takes operand 0 of type tensor<8xf32>, padded to a multiple of its shards, where the other side has (7,); try -sdy-insert-explicit-reshards='enable-full-version=true' first}}
  return %0 : tensor<7xf32>
}

// -----

// NEWER: the pass did something else
sdy.mesh @mesh = <["x"=2]>
func.func @reshape(%a: tensor<10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<10xf32> {
  // expected-error@+1 {{from (10,) to (5, 2) changes dimensions that are not divisible by their shardings; try -sdy-resolve-permutation-factors first}}
  %0 = stablehlo.reshape %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<10xf32>) -> tensor<5x2xf32>
  return %a : tensor<10xf32>
}

// -----

// NEWER: the pass did something else
// DIFFERS: the reference ends its process
sdy.mesh @mesh = <["x"=2]>
func.func @slice(%a: tensor<10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<10xf32> {
  // expected-error@+1 {{slices dimension 0, which is sharded, so that data moves between devices; try -sdy-resolve-permutation-factors first}}
  %0 = stablehlo.slice %a [3:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<10xf32>) -> tensor<5xf32>
  return %a : tensor<10xf32>
}

// -----

// NEWER: the pass did something else
sdy.mesh @mesh = <["x"=2]>
func.func @groups(%a: tensor<1x4x9xf32>, %k: tensor<3x3x6xf32>) -> tensor<1x2x6xf32> {
  %0 = sdy.all_slice [{}, {}, {"x"}] %a out_sharding=<@mesh, [{}, {}, {"x"}]> : tensor<1x4x9xf32>
  // expected-error@+1 {{has feature_group_count 3 along a padded dimension of size 10; groups of more than one element cannot be padded. Try -sdy-resolve-permutation-factors first}}
  %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 3 : i64, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}, {}]>]>} : (tensor<1x4x9xf32>, tensor<3x3x6xf32>) -> tensor<1x2x6xf32>
  return %1 : tensor<1x2x6xf32>
}

// -----

// NEWER: the pass did something else
// DIFFERS: the reference ends its process
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @elided() {
  // expected-error@+1 {{is sharded and not divisible, which needs a dense constant, not dense_resource<r> : tensor<7xf32>}}
  %0 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} dense_resource<r> : tensor<7xf32>
  return
}

// -----

// NEWER: the pass did something else
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @callee(%arg0: tensor<7xf32>) {
  // expected-error@+1 {{gives result 0 as tensor<7xf32>, but the function returns tensor<8xf32>}}
  %0 = func.call @f(%arg0) : (tensor<7xf32>) -> tensor<7xf32>
  return
}
func.func private @f(%arg0: tensor<7xf32>) -> (tensor<7xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  %0 = sdy.all_slice [{"x"}] %arg0 out_sharding=<@m, [{"x"}]> : tensor<7xf32>
  return %0 : tensor<7xf32>
}

// -----

// NEWER: the pass did something else
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @one_side(%arg0: tensor<7xf32>) {
  %0 = sdy.all_slice [{"x"}] %arg0 out_sharding=<@m, [{"x"}]> : tensor<7xf32>
  // expected-error@+1 {{is padded on one side and has no sharding on the other}}
  %1 = stablehlo.reshape %0 : (tensor<7xf32>) -> tensor<7x1xf32>
  return
}

// -----

// NEWER: the pass did something else
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @expands(%arg0: tensor<1xf32>) {
  %0 = sdy.all_slice [{"x"}] %arg0 out_sharding=<@m, [{"x"}]> : tensor<1xf32>
  // expected-error@+1 {{expands dimension 0, which is sharded; try -sdy-resolve-permutation-factors first}}
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (tensor<1xf32>) -> tensor<8xf32>
  return
}

// -----

// NEWER: the pass did something else
// DIFFERS: the reference adds up what the padding of the updates holds
sdy.mesh @mesh = <["x"=2]>
func.func @scatter_into_scalar(%a: tensor<f32>) -> tensor<f32> {
  %j = stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<5x0xi32>
  %v = stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<5xf32>
  // expected-error@+1 {{has padded updates and no dimension along which an index could be out of bounds}}
  %0 = "stablehlo.scatter"(%a, %j, %v) <{scatter_dimension_numbers = #stablehlo.scatter<index_vector_dim = 1>}> ({
  ^bb0(%b: tensor<f32>, %c: tensor<f32>):
    %d = stablehlo.add %b, %c : tensor<f32>
    stablehlo.return %d : tensor<f32>
  }) : (tensor<f32>, tensor<5x0xi32>, tensor<5xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// NEWER: the pass did something else
sdy.mesh @mesh = <["x"=2]>
func.func @unpadded(%a: tensor<7xf32>) {
  %0 = sdy.reshard %a <@mesh, [{"x"}]> : tensor<7xf32>
  // expected-error@+1 {{takes operand 0 of type tensor<7xf32>, sharded as <@mesh, [{"x"}]>, but its producer does not pad it to a multiple of its shards; try -sdy-insert-explicit-reshards='enable-full-version=true' first}}
  %1 = stablehlo.negate %0 : tensor<7xf32>
  return
}

// -----

// NEWER: the pass did something else
sdy.mesh @mesh = <["x"=2]>
func.func @unpadded_argument(%a: tensor<7xf32>) {
  %0 = sdy.named_computation<"f">(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] (%b: tensor<7xf32>) {
    // expected-error@+1 {{takes operand 0 of type tensor<7xf32>, sharded as <@mesh, [{"x"}]>, but its producer does not pad it to a multiple of its shards}}
    %1 = stablehlo.negate %b : tensor<7xf32>
    sdy.return %1 : tensor<7xf32>
  } : (tensor<7xf32>) -> tensor<7xf32>
  return
}

// -----

// NEWER: the pass did something else
sdy.mesh @mesh = <["x"=2]>
func.func @reshard_of_padded(%a: tensor<7xf32>) {
  %0 = sdy.all_slice [{"x"}] %a out_sharding=<@mesh, [{"x"}]> : tensor<7xf32>
  // expected-error@+1 {{takes operand 0 of type tensor<8xf32>, padded to a multiple of its shards, where the other side has (7,)}}
  %1 = sdy.reshard %0 <@mesh, [{}]> : tensor<7xf32>
  return
}

// -----

// NEWER: the pass did something else
// DIFFERS: the reference ends its process
sdy.mesh @m = <["x"=9223372036854775807]>
func.func @too_long() {
  // expected-error@+1 {{would be padded by 9223372036854775804 elements, of which at most 4194304 can be written}}
  %0 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  return
}
