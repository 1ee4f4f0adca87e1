// RUN: sdy_opt %s -sdy-add-func-data-flow-edges -sdy-add-func-data-flow-edges | FileCheck %s

// DIFFERS: the reference adds a second edge, which its verifier refuses
// What has an edge keeps it.
sdy.mesh @m = <["a"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-NEXT:    %[[CALL:.*]] = call @f(%arg0)
// CHECK-NEXT:    %[[EDGE:.*]] = sdy.func_data_flow_edge %[[CALL]] :
// CHECK-NEXT:    return %[[EDGE]]
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>}) -> tensor<8xf32> {
  %0 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func private @f(
// CHECK-NEXT:    %[[ARGUMENT:.*]] = sdy.func_data_flow_edge %arg0 :
// CHECK-NEXT:    stablehlo.sine %[[ARGUMENT]] :
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
