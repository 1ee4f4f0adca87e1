// REQUIRES: jaxlib-0.12
// RUN: sdy_opt %s -split-input-file -verify-diagnostics -sdy-convert-global-to-local='enable-rgv3=false'

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference ends its process
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @no_maximum(%arg0: tensor<8xcomplex<f32>> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<3x1xi32>) -> (tensor<3xcomplex<f32>> {sdy.sharding = #sdy.sharding<@m, [{}], unreduced=max{"x"}>}) {
  // expected-error@+1 {{combines values by max, which complex<f32> does not support}}
  %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}], unreduced=max{"x"}>]>} : (tensor<8xcomplex<f32>>, tensor<3x1xi32>) -> tensor<3xcomplex<f32>>
  return %0 : tensor<3xcomplex<f32>>
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference accepts it
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @as_maximum(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
  // expected-error@+1 {{combines values by sum along {"x"}, but the result is completed by max}}
  %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@m, [], unreduced=max{"x"}>]>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  return
}

// -----

// NEWER: tables, groups and special treatment are others
// DIFFERS: the reference accepts it
sdy.mesh @m = <["x"=2, "y"=2]>
func.func @two_ways(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %arg1: tensor<f32>) {
  // expected-error@+1 {{has partial results that combine in different ways}}
  %0:2 = stablehlo.reduce(%arg0 init: %arg1), (%arg0 init: %arg1) across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@m, [], unreduced={"x"}>, <@m, [], unreduced=max{"x"}>]>} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%c: tensor<f32>, %d: tensor<f32>) {
    %1 = stablehlo.add %a, %b : tensor<f32>
    %2 = stablehlo.maximum %c, %d : tensor<f32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<f32>
  }
  return
}
