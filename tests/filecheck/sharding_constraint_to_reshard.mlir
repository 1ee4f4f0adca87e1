// RUN: sdy_opt %s -sdy-sharding-constraint-to-reshard | FileCheck %s

sdy.mesh @mesh = <["p"=2]>

// Every constraint, used or not, whether or not it changes anything, with its attributes; inside regions too.
// CHECK-LABEL: func.func @constraints(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}) -> tensor<8xf32>
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{"p"}]> {note = "kept"}
// CHECK-NEXT: %1 = sdy.reshard %0 <@mesh, [{}]>
// CHECK-NEXT: %2 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={} (%arg1: tensor<8xf32>) {
// CHECK-NEXT: %3 = sdy.reshard %arg1 <@mesh, [{"p", ?}]>
// CHECK-NEXT: sdy.return %3
// CHECK-NEXT: }
// CHECK-NEXT: return %2
func.func @constraints(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}]>}) -> tensor<8xf32> {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"p"}]> {note = "kept"} : tensor<8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{}]> : tensor<8xf32>
  %2 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={} (%arg1: tensor<8xf32>) {
    %3 = sdy.sharding_constraint %arg1 <@mesh, [{"p", ?}]> : tensor<8xf32>
    sdy.return %3 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}
// CHECK-LABEL: func.func private @other(
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, []>
// CHECK-NEXT: return %0
func.func private @other(%arg0: !stablehlo.token) -> !stablehlo.token {
  %0 = sdy.sharding_constraint %arg0 <@mesh, []> : !stablehlo.token
  return %0 : !stablehlo.token
}
