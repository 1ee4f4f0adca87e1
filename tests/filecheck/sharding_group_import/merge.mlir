// RUN: sdy_opt %s -split-input-file -sdy-sharding-group-import | FileCheck %s

// Groups that share a value become one, numbered in the order in which the leading groups were first met: the group first
// met on a value leads the others of that value.
// CHECK-LABEL: func.func @shared_values(
// CHECK-NEXT: sdy.sharding_group %arg0 group_id=1
// CHECK-NEXT: sdy.sharding_group %arg1 group_id=0
// CHECK-NEXT: sdy.sharding_group %arg2 group_id=1
// CHECK-NEXT: return
func.func @shared_values(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>) {
  sdy.sharding_group %arg0 group_id=30 : tensor<8xf32>
  sdy.sharding_group %arg1 group_id=20 : tensor<8xf32>
  sdy.sharding_group %arg2 group_id=10 : tensor<8xf32>
  sdy.sharding_group %arg2 group_id=30 : tensor<8xf32>
  sdy.sharding_group %arg1 group_id=20 : tensor<8xf32>
  return
}

// -----

// CHECK-LABEL: func.func @negative_ids(
// CHECK-NEXT: sdy.sharding_group %arg0 group_id=1
// CHECK-NEXT: sdy.sharding_group %arg1 group_id=0
// CHECK-NEXT: sdy.sharding_group %arg2 group_id=1
// CHECK-NEXT: sdy.sharding_group %arg3 group_id=2
// CHECK-NEXT: sdy.sharding_group %arg4 group_id=3
// CHECK-NEXT: return
func.func @negative_ids(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<8xf32>, %arg4: tensor<8xf32>) {
  sdy.sharding_group %arg0 group_id=7 : tensor<8xf32>
  sdy.sharding_group %arg1 group_id=9 : tensor<8xf32>
  sdy.sharding_group %arg2 group_id=2 : tensor<8xf32>
  sdy.sharding_group %arg2 group_id=7 : tensor<8xf32>
  sdy.sharding_group %arg3 group_id=5 : tensor<8xf32>
  sdy.sharding_group %arg0 group_id=7 : tensor<8xf32>
  sdy.sharding_group %arg4 group_id=-3 : tensor<8xf32>
  return
}

// -----

// CHECK-LABEL: func.func @chain(
// CHECK-NEXT: sdy.sharding_group %arg0 group_id=0
// CHECK-NEXT: sdy.sharding_group %arg1 group_id=0
// CHECK-NEXT: sdy.sharding_group %arg2 group_id=1
// CHECK-NEXT: sdy.sharding_group %arg3 group_id=0
// CHECK-NEXT: return
func.func @chain(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<8xf32>) {
  sdy.sharding_group %arg0 group_id=30 : tensor<8xf32>
  sdy.sharding_group %arg1 group_id=5 : tensor<8xf32>
  sdy.sharding_group %arg1 group_id=40 : tensor<8xf32>
  sdy.sharding_group %arg2 group_id=10 : tensor<8xf32>
  sdy.sharding_group %arg3 group_id=40 : tensor<8xf32>
  sdy.sharding_group %arg3 group_id=30 : tensor<8xf32>
  return
}

// -----

// Only shapes must agree, not element types; a group of one stays. Attributes of the op that stays are kept.
// CHECK-LABEL: func.func @shapes(
// CHECK-NEXT: %0 = stablehlo.sine %arg0
// CHECK-NEXT: sdy.sharding_group %0 group_id=0 {note = "kept"}
// CHECK-NEXT: sdy.sharding_group %arg1 group_id=0
// CHECK-NEXT: sdy.sharding_group %arg2 group_id=1
// CHECK-NEXT: return %0
func.func @shapes(%arg0: tensor<8x4xf32>, %arg1: tensor<8x4xi1>, %arg2: tensor<8x?xi1>) -> tensor<8x4xf32> {
  %0 = stablehlo.sine %arg0 : tensor<8x4xf32>
  sdy.sharding_group %0 group_id=4 {note = "kept"} : tensor<8x4xf32>
  sdy.sharding_group %arg1 group_id=4 : tensor<8x4xi1>
  sdy.sharding_group %arg2 group_id=3 : tensor<8x?xi1>
  return %0 : tensor<8x4xf32>
}

// -----

// Inner ops are met before the op that holds them; members inside one manual computation may form a group.
sdy.mesh @mesh = <["x"=2]>
// CHECK-LABEL: func.func @regions(
// CHECK-NEXT: sdy.sharding_group %arg0 group_id=0
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={} (%arg1: tensor<8xf32>) {
// CHECK-NEXT: %1 = stablehlo.sine %arg1
// CHECK-NEXT: sdy.sharding_group %arg1 group_id=1
// CHECK-NEXT: sdy.sharding_group %1 group_id=1
// CHECK-NEXT: sdy.return %1
// CHECK-NEXT: }
// CHECK-NEXT: sdy.sharding_group %0 group_id=0
// CHECK-NEXT: return %0
func.func @regions(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  sdy.sharding_group %arg0 group_id=5 : tensor<8xf32>
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={} (%arg1: tensor<8xf32>) {
    %1 = stablehlo.sine %arg1 : tensor<8xf32>
    sdy.sharding_group %arg1 group_id=6 : tensor<8xf32>
    sdy.sharding_group %1 group_id=6 : tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  sdy.sharding_group %0 group_id=5 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
