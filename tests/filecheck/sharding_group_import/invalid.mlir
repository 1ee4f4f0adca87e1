// RUN: sdy_opt %s -split-input-file -verify-diagnostics -sdy-sharding-group-import

func.func @shapes(%arg0: tensor<8x4xf32>, %arg1: tensor<4x8xf32>) {
  // expected-note@+1 {{first member of the group}}
  sdy.sharding_group %arg0 group_id=12 : tensor<8x4xf32>
  // expected-error@+1 {{'sdy.sharding_group' op puts values of different shapes into the sharding group 12}}
  sdy.sharding_group %arg1 group_id=12 : tensor<4x8xf32>
  return
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @into_a_computation(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // expected-note@+1 {{first member of the group}}
  sdy.sharding_group %arg0 group_id=7 : tensor<8xf32>
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={} (%arg1: tensor<8xf32>) {
    // expected-error@+1 {{'sdy.sharding_group' op puts values of different manual computations into the sharding group 7}}
    sdy.sharding_group %arg1 group_id=7 : tensor<8xf32>
    sdy.return %arg1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @two_computations(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={} (%arg1: tensor<8xf32>) {
    // expected-note@+1 {{first member of the group}}
    sdy.sharding_group %arg1 group_id=7 : tensor<8xf32>
    sdy.return %arg1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={} (%arg1: tensor<8xf32>) {
    // expected-error@+1 {{'sdy.sharding_group' op puts values of different manual computations into the sharding group 7}}
    sdy.sharding_group %arg1 group_id=7 : tensor<8xf32>
    sdy.return %arg1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// NEWER: before, calls were not looked through.
// The manual computation around the call of a function counts.
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // expected-note@+1 {{first member of the group}}
  sdy.sharding_group %arg0 group_id=1 : tensor<8xf32>
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={} (%arg1: tensor<8xf32>) {
    %1 = func.call @outer(%arg1) : (tensor<8xf32>) -> tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @outer(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @inner(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @inner(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'sdy.sharding_group' op puts values of different manual computations into the sharding group 1}}
  sdy.sharding_group %arg0 group_id=1 : tensor<8xf32>
  return %arg0 : tensor<8xf32>
}
