// RUN: sdy_opt %s -split-input-file -verify-diagnostics -sdy-pad-for-divisibility

// NEWER: the pass did something else
// expected-error@+2 {{has argument 0 of type tensor<7xf32> sharded as <@mesh, [{"x"}]>, which is not divisible; try -sdy-update-non-divisible-input-output-shardings before}}
sdy.mesh @mesh = <["x"=2]>
func.func @argument(%a: tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  return
}

// -----

// NEWER: the pass did something else
sdy.mesh @mesh = <["x"=2]>
func.func @unsharded(%a: tensor<7xf32>) -> tensor<7xf32> {
  %0 = sdy.all_slice [{"x"}] %a out_sharding=<@mesh, [{"x"}]> : tensor<7xf32>
  // expected-error@+1 {{takes operand 0 of type tensor<8xf32>, padded to be divisible, where the other side has (7,); try -sdy-insert-explicit-reshards='enable-full-version=true' before}}
  return %0 : tensor<7xf32>
}

// -----

// NEWER: the pass did something else
sdy.mesh @mesh = <["x"=2]>
func.func @reshape(%a: tensor<10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<10xf32> {
  // expected-error@+1 {{from (10,) to (5, 2) changes dimensions that are not divisible by their shardings; try -sdy-resolve-permutation-factors before}}
  %0 = stablehlo.reshape %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<10xf32>) -> tensor<5x2xf32>
  return %a : tensor<10xf32>
}

// -----

// NEWER: the pass did something else
// DIFFERS: the reference ends its process
sdy.mesh @mesh = <["x"=2]>
func.func @slice(%a: tensor<10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<10xf32> {
  // expected-error@+1 {{slices dimension 0, which is sharded, so that data moves between devices; try -sdy-resolve-permutation-factors before}}
  %0 = stablehlo.slice %a [3:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<10xf32>) -> tensor<5xf32>
  return %a : tensor<10xf32>
}

// -----

// NEWER: the pass did something else
sdy.mesh @mesh = <["x"=2]>
func.func @groups(%a: tensor<1x4x9xf32>, %k: tensor<3x3x6xf32>) -> tensor<1x2x6xf32> {
  %0 = sdy.all_slice [{}, {}, {"x"}] %a out_sharding=<@mesh, [{}, {}, {"x"}]> : tensor<1x4x9xf32>
  // expected-error@+1 {{has feature_group_count 3 along a padded dimension of size 10; groups of more than one element cannot be padded. Try -sdy-resolve-permutation-factors before}}
  %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 3 : i64, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}, {}]>]>} : (tensor<1x4x9xf32>, tensor<3x3x6xf32>) -> tensor<1x2x6xf32>
  return %1 : tensor<1x2x6xf32>
}
