// RUN: sdy_opt %s -sdy-remove-sharding-groups | FileCheck %s

// CHECK-LABEL: func.func @groups(
// CHECK-NEXT: %0 = "stablehlo.case"(%arg1) ({
// CHECK-NEXT: stablehlo.return %arg0
// CHECK-NEXT: })
// CHECK-NEXT: return %0
func.func @groups(%arg0: tensor<8xf32>, %arg1: tensor<i32>) -> tensor<8xf32> {
  sdy.sharding_group %arg0 group_id=0 : tensor<8xf32>
  %0 = "stablehlo.case"(%arg1) ({
    sdy.sharding_group %arg0 group_id=-7 : tensor<8xf32>
    stablehlo.return %arg0 : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  sdy.sharding_group %0 group_id=0 {note = "gone"} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
// CHECK-LABEL: func.func private @other(
// CHECK-NEXT: return
func.func private @other(%arg0: tensor<8xf32>) {
  sdy.sharding_group %arg0 group_id=0 : tensor<8xf32>
  return
}
