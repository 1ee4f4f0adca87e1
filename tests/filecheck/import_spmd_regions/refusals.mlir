// RUN: sdy_opt %s -split-input-file -verify-diagnostics -pyshardy-import-spmd-regions

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'stablehlo.custom_call' op takes a tensor that came through no @SPMDFullToShardShape}}
  %0 = stablehlo.custom_call @SPMDShardToFullShape(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'stablehlo.custom_call' op makes a local tensor that leaves its block without a @SPMDShardToFullShape}}
  %0 = stablehlo.custom_call @SPMDFullToShardShape(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @SPMDFullToShardShape(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.custom_call @SPMDShardToFullShape(%0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error@+1 {{'stablehlo.custom_call' op depends on a result of its own manual computation through ops outside it}}
  %2 = stablehlo.custom_call @SPMDFullToShardShape(%1) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = stablehlo.add %0, %2 : tensor<8xf32>
  %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %4 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @SPMDFullToShardShape(%x) : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error@+1 {{'stablehlo.custom_call' op lacks the sharding of the tensor that it makes}}
  %1 = stablehlo.custom_call @SPMDShardToFullShape(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @SPMDFullToShardShape(%x) : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error@+1 {{'stablehlo.add' op is local and uses a global tensor that came through no @SPMDFullToShardShape}}
  %1 = stablehlo.add %0, %x : tensor<8xf32>
  %2 = stablehlo.custom_call @SPMDShardToFullShape(%1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}
