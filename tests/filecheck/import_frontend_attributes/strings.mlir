// RUN: sdy_opt %s -split-input-file -pyshardy-import-frontend-attributes | FileCheck %s

// Meshes, shardings of arguments, results and constraints, and rules; what else is in frontend attributes stays. The
// sharding of an add is dropped, as in XLA, that of a callback kept. Tilings say the same and go away.
// CHECK: module attributes {mhlo.frontend_attributes = {other = "kept"}} {
// CHECK-NEXT: sdy.mesh @one = <[], device_ids=[1]>
// CHECK-NEXT: sdy.mesh @mesh = <["x"=2]>
// CHECK-NEXT: func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}p1]>}, %arg1: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, tensor<8xf32>) {
// CHECK-NEXT: %0 = stablehlo.add %arg0, %arg1 {mhlo.frontend_attributes = {a = "b"}} : tensor<8xf32>
// CHECK-NEXT: %1 = stablehlo.custom_call @Sharding(%0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %2 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%1) {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %3 = stablehlo.custom_call @foo(%2) {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}, custom>} : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: return %2, %3 : tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT: }
// CHECK-NEXT: }
module attributes {mhlo.frontend_attributes = {other = "kept", xla.sdy.meshes = "{mesh = #sdy.mesh<[\22x\22=2]>, one = #sdy.mesh<[], device_ids=[1]>}"}} {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<8xf32> {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding<@mesh, [{\22x\22}p1]>"},
                                     mhlo.sharding = "{devices=[2]<=[2]}"}, %y: tensor<8xf32> {mhlo.sharding = "{replicated}"})
      -> (tensor<8xf32> {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding<@mesh, [{?}]>"}}, tensor<8xf32>) {
    %0 = stablehlo.add %x, %y {mhlo.frontend_attributes = {a = "b", xla.sdy.sharding = "#sdy.sharding_per_value<[<@mesh, [{}]>]>"}} : tensor<8xf32>
    %1 = stablehlo.custom_call @Sharding(%0) {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[<@mesh, [{\22x\22}]>]>"},
        mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<8xf32>) -> tensor<8xf32>
    %2 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%1) {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding<@one, []>"}} : (tensor<8xf32>) -> tensor<8xf32>
    %3 = stablehlo.custom_call @foo(%2) {mhlo.frontend_attributes = {xla.sdy.sharding_rule = "#sdy.op_sharding_rule<([i])->([i]) {i=8}, custom>"}} : (tensor<8xf32>) -> tensor<8xf32>
    return %2, %3 : tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// Without meshes, tilings stay for the pass that reads them.
// CHECK: func.func @main(%arg0: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<8xf32> {
// CHECK-NEXT: %0 = stablehlo.custom_call @foo(%arg0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}>} : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: return %0 : tensor<8xf32>
// CHECK-NEXT: }
func.func @main(%x: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @foo(%x) {mhlo.frontend_attributes = {xla.sdy.sharding_rule = "#sdy.op_sharding_rule<([i])->([i]) {i=8}>"}} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
