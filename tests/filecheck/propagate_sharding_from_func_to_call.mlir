// RUN: sdy_opt %s -sdy-propagate-sharding-from-func-to-call | FileCheck %s

sdy.mesh @empty_mesh = <[]>
sdy.mesh @mesh = <["r"=2]>
sdy.mesh @device = <[], device_ids=[0]>

// A bare call takes the shardings of its callee's results, open where there is none; one with shardings keeps them, even
// if they say nothing. A sharding on one device is copied, but does not count as one.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0:3 = call @step(%arg0, %arg1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}]>, <@mesh, []>, <@mesh, [{"r"}, {}]>]>}
// CHECK-NEXT: %1:3 = call @step(%0#2, %0#1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}]>, <@mesh, []>, <@mesh, [{?}, {?}]>]>}
// CHECK-NEXT: %2 = call @host(%1#2)
// CHECK-NEXT: %3:2 = call @both(%2) {sdy.sharding = #sdy.sharding_per_value<[<@device, []>, <@mesh, [{}, {"r", ?}p1]>]>}
// CHECK-NEXT: %4 = call @placeholder(%3#0) {sdy.sharding = #sdy.sharding_per_value<[<@empty_mesh, [{}, {?}]>]>}
// CHECK-NEXT: %5 = call @plain(%4)
// CHECK-NEXT: return %5
func.func @main(%arg0: tensor<8x8xf32>, %arg1: !stablehlo.token) -> tensor<8x8xf32> {
  %0:3 = call @step(%arg0, %arg1) : (tensor<8x8xf32>, !stablehlo.token) -> (tensor<8x8xf32>, !stablehlo.token, tensor<8x8xf32>)
  %1:3 = call @step(%0#2, %0#1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}]>, <@mesh, []>, <@mesh, [{?}, {?}]>]>} : (tensor<8x8xf32>, !stablehlo.token) -> (tensor<8x8xf32>, !stablehlo.token, tensor<8x8xf32>)
  %2 = call @host(%1#2) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3:2 = call @both(%2) : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  %4 = call @placeholder(%3#0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = call @plain(%4) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %5 : tensor<8x8xf32>
}

func.func private @step(%arg0: tensor<8x8xf32>, %arg1: !stablehlo.token) -> (tensor<8x8xf32>, !stablehlo.token, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"r"}, {}]>}) {
  return %arg0, %arg1, %arg0 : tensor<8x8xf32>, !stablehlo.token, tensor<8x8xf32>
}
func.func private @host(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@device, []>}) {
  return %arg0 : tensor<8x8xf32>
}
func.func private @both(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@device, []>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"r", ?}p1]>}) {
  return %arg0, %arg0 : tensor<8x8xf32>, tensor<8x8xf32>
}
func.func private @placeholder(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@empty_mesh, [{}, {?}]>}) {
  return %arg0 : tensor<8x8xf32>
}
// Calls inside regions count; shardings of arguments do not.
// CHECK-LABEL: func.func private @plain(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"r"}, {}]>}) -> tensor<8x8xf32>
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={} (%arg1: tensor<8x8xf32>) {
// CHECK-NEXT: %1 = func.call @placeholder(%arg1) {sdy.sharding = #sdy.sharding_per_value<[<@empty_mesh, [{}, {?}]>]>}
// CHECK-NEXT: sdy.return %1
// CHECK-NEXT: }
// CHECK-NEXT: return %0
func.func private @plain(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"r"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={} (%arg1: tensor<8x8xf32>) {
    %1 = func.call @placeholder(%arg1) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    sdy.return %1 : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
