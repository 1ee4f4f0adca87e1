// RUN: sdy_opt %s -split-input-file -pyshardy-import-manual-computations | FileCheck %s

// In XLA's older form the calls of the change of shape list the shardings. The body takes its arguments in another
// order than the first call gives them, and one result is used in two places.
// CHECK: sdy.mesh @mesh = <["x"=2, "y"=2]>
// CHECK-NEXT: func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
// CHECK-NEXT: %0:2 = sdy.manual_computation(%arg1, %arg0) in_shardings=[<@mesh, [{"x"}]>, <@mesh, [{}]>] out_shardings=[<@mesh, [{"x"}]>, <@mesh, [{"x", ?}]>] manual_axes={"x"} (%arg2: tensor<4xf32>, %arg3: tensor<8xf32>) {
// CHECK-NEXT: %1 = stablehlo.tanh %arg2 : tensor<4xf32>
// CHECK-NEXT: sdy.return %1, %1 : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: } : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK-NEXT: return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func private @xla.sdy.manual_computation_body.1(%x: tensor<4xf32>, %y: tensor<8xf32>) -> (tensor<4xf32>, tensor<8xf32>) {
  %0 = stablehlo.tanh %x : tensor<4xf32>
  return %0, %y : tensor<4xf32>, tensor<8xf32>
}
func.func @main(%y: tensor<8xf32>, %x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0:2 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%y, %x) {mhlo.frontend_attributes = {
      xla.sdy.in_shardings = "#sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, [{\22x\22}]>]>", xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22}>"}}
      : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<4xf32>)
  %1:2 = call @xla.sdy.manual_computation_body.1(%0#1, %0#0) : (tensor<4xf32>, tensor<8xf32>) -> (tensor<4xf32>, tensor<8xf32>)
  %2:2 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%1#0, %1#0) {mhlo.frontend_attributes = {
      xla.sdy.out_shardings = "#sdy.sharding_per_value<[<@mesh, [{\22x\22}]>, <@mesh, [{\22x\22, ?}]>]>", xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22}>"}}
      : (tensor<4xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %2#0, %2#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// Two calls of one body, one inside another manual computation; a constraint that others use stays; an argument says
// itself how it is sharded; a computation without inputs, and one without results.
// CHECK: sdy.mesh @mesh = <["x"=2, "y"=2]>
// CHECK-NEXT: func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
// CHECK-NEXT: %0 = stablehlo.custom_call @Sharding(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %1 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x", ?}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<4xf32>) {
// CHECK-NEXT: %5 = stablehlo.tanh %arg1 : tensor<4xf32>
// CHECK-NEXT: sdy.return %5 : tensor<4xf32>
// CHECK-NEXT: } : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %2 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<4xf32>) {
// CHECK-NEXT: %5 = stablehlo.tanh %arg1 : tensor<4xf32>
// CHECK-NEXT: sdy.return %5 : tensor<4xf32>
// CHECK-NEXT: } : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[] manual_axes={"x"} (%arg1: tensor<4xf32>) {
// CHECK-NEXT: stablehlo.custom_call @print(%arg1) {has_side_effect = true} : (tensor<4xf32>) -> ()
// CHECK-NEXT: sdy.return
// CHECK-NEXT: } : (tensor<8xf32>) -> ()
// CHECK-NEXT: %3 = sdy.manual_computation() in_shardings=[] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} () {
// CHECK-NEXT: %cst = stablehlo.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK-NEXT: sdy.return %cst : tensor<4xf32>
// CHECK-NEXT: } : () -> tensor<8xf32>
// CHECK-NEXT: %4 = stablehlo.add %0, %1 : tensor<8xf32>
// CHECK-NEXT: return %4, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func private @xla.sdy.manual_computation_body.2() -> tensor<4xf32> {
  %0 = stablehlo.constant dense<1.0> : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @xla.sdy.manual_computation_body.3(%x: tensor<4xf32>) {
  stablehlo.custom_call @print(%x) {has_side_effect = true} : (tensor<4xf32>) -> ()
  return
}
func.func private @xla.sdy.manual_computation_body.1(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.custom_call @Sharding(%x) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%0) {mhlo.frontend_attributes = {xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22}>"}} : (tensor<8xf32>) -> tensor<4xf32>
  %2 = call @xla.sdy.manual_computation_body.1(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<4xf32>) -> tensor<8xf32>
  %4 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%x) {mhlo.frontend_attributes = {xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22}>"}} : (tensor<8xf32>) -> tensor<4xf32>
  %5 = call @xla.sdy.manual_computation_body.1(%4) : (tensor<4xf32>) -> tensor<4xf32>
  %6 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%5) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<4xf32>) -> tensor<8xf32>
  call @xla.sdy.manual_computation_body.3(%4) : (tensor<4xf32>) -> ()
  %7 = call @xla.sdy.manual_computation_body.2() {mhlo.frontend_attributes = {xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22}>"}} : () -> tensor<4xf32>
  %8 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%7) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<4xf32>) -> tensor<8xf32>
  %9 = stablehlo.add %0, %3 : tensor<8xf32>
  return %9, %6, %8 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
