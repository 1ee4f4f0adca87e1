// RUN: sdy_opt %s -split-input-file -verify-diagnostics -pyshardy-import-custom-calls

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'stablehlo.custom_call' op lacks the sharding that the result of the function has}}
  %0 = stablehlo.custom_call @xla.sdy.FuncResultSharding(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @main(%x: tensor<8xf32>) {
  // expected-error@+1 {{'stablehlo.custom_call' op has xla.sdy.sharding_group_id = 'five', and needs a number}}
  stablehlo.custom_call @xla.sdy.ShardingGroup(%x) {mhlo.frontend_attributes = {xla.sdy.sharding_group_id = "five"}} : (tensor<8xf32>) -> ()
  return
}

// -----

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'stablehlo.custom_call' op has xla.sdy.allowed_direction = 4, and needs a number from 0 to 3}}
  %0 = stablehlo.custom_call @xla.sdy.PropagationBarrier(%x) {mhlo.frontend_attributes = {xla.sdy.allowed_direction = "4 : i32"}} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) {
  // expected-error@+1 {{'stablehlo.custom_call' op is (tensor<8xf32>, tensor<8xf32>) -> (tensor<2xf32>, tensor<2xf32>), needed a call that takes one tensor and returns one of the same type}}
  %0:2 = stablehlo.custom_call @Sharding(%x, %y) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @main(%x: tensor<8xf32>) {
  // expected-error@+1 {{'stablehlo.custom_call' op is (tensor<8xf32>) -> (tensor<8xf32>), needed a call that takes one tensor and returns nothing}}
  %0 = stablehlo.custom_call @xla.sdy.ShardingGroup(%x) {mhlo.frontend_attributes = {xla.sdy.sharding_group_id = "5"}} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----
func.func @main(%x: tensor<8xf32>) {
  // expected-error@+1 {{'stablehlo.custom_call' op has xla.sdy.sharding_group_id = '9223372036854775808 : i64', and needs a number of 64 bits}}
  stablehlo.custom_call @xla.sdy.ShardingGroup(%x) {mhlo.frontend_attributes = {xla.sdy.sharding_group_id = "9223372036854775808 : i64"}} : (tensor<8xf32>) -> ()
  return
}
