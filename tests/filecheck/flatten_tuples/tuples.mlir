// RUN: sdy_opt %s -split-input-file -pyshardy-flatten-tuples | FileCheck %s

// A tuple that is used element by element is no tuple; one without elements is no result. What is made into a tuple
// and taken out of it is used as it was, and a tuple that nobody uses goes away.
// CHECK: func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<4xi32>) -> (tensor<8xi32>, tensor<8xf32>, tensor<4xi32>) {
// CHECK-NEXT: %0:2 = stablehlo.custom_call @two(%arg0) {some.attribute} : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xi32>)
// CHECK-NEXT: stablehlo.custom_call @none(%arg0) {has_side_effect = true} : (tensor<8xf32>) -> ()
// CHECK-NEXT: return %0#1, %0#0, %arg1 : tensor<8xi32>, tensor<8xf32>, tensor<4xi32>
// CHECK-NEXT: }
func.func @main(%x: tensor<8xf32>, %y: tensor<4xi32>) -> (tensor<8xi32>, tensor<8xf32>, tensor<4xi32>) {
  %0 = stablehlo.custom_call @two(%x) {some.attribute} : (tensor<8xf32>) -> tuple<tensor<8xf32>, tensor<8xi32>>
  %1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<8xf32>, tensor<8xi32>>) -> tensor<8xi32>
  %2 = stablehlo.get_tuple_element %0[0] : (tuple<tensor<8xf32>, tensor<8xi32>>) -> tensor<8xf32>
  %3 = stablehlo.custom_call @none(%x) {has_side_effect = true} : (tensor<8xf32>) -> tuple<>
  %4 = stablehlo.tuple %x, %y : tuple<tensor<8xf32>, tensor<4xi32>>
  %5 = stablehlo.get_tuple_element %4[1] : (tuple<tensor<8xf32>, tensor<4xi32>>) -> tensor<4xi32>
  %6 = stablehlo.tuple %x : tuple<tensor<8xf32>>
  return %1, %2, %5 : tensor<8xi32>, tensor<8xf32>, tensor<4xi32>
}

// -----

// A tuple that is used as a whole stays.
// CHECK: func.func @main(%arg0: tensor<8xf32>) -> tuple<tensor<8xf32>> {
// CHECK-NEXT: %0 = stablehlo.custom_call @one(%arg0) : (tensor<8xf32>) -> tuple<tensor<8xf32>>
// CHECK-NEXT: %1 = stablehlo.get_tuple_element %0[0] : (tuple<tensor<8xf32>>) -> tensor<8xf32>
// CHECK-NEXT: return %0 : tuple<tensor<8xf32>>
// CHECK-NEXT: }
func.func @main(%x: tensor<8xf32>) -> tuple<tensor<8xf32>> {
  %0 = stablehlo.custom_call @one(%x) : (tensor<8xf32>) -> tuple<tensor<8xf32>>
  %1 = stablehlo.get_tuple_element %0[0] : (tuple<tensor<8xf32>>) -> tensor<8xf32>
  return %0 : tuple<tensor<8xf32>>
}

// -----

// The border of a manual computation takes the elements of a tuple, as it returns them: XLA for TPUs makes a pair of
// each complex number.
// CHECK: func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
// CHECK-NEXT: %0:2 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%arg0, %arg1) {has_side_effect = true} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK-NEXT: return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT: }
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.tuple %x, %y : tuple<tensor<4xf32>, tensor<4xf32>>
  %1 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%0) {has_side_effect = true} : (tuple<tensor<4xf32>, tensor<4xf32>>) -> tuple<tensor<8xf32>, tensor<8xf32>>
  %2 = stablehlo.get_tuple_element %1[0] : (tuple<tensor<8xf32>, tensor<8xf32>>) -> tensor<8xf32>
  %3 = stablehlo.get_tuple_element %1[1] : (tuple<tensor<8xf32>, tensor<8xf32>>) -> tensor<8xf32>
  return %2, %3 : tensor<8xf32>, tensor<8xf32>
}
