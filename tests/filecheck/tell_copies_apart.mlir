// RUN: sdy_opt %s -split-input-file -pyshardy-tell-copies-apart | FileCheck %s

// The third one is a copy of the first. Names of values and shardings make no difference.

// CHECK-LABEL: func.func @main
// CHECK: sdy.named_computation<"f">
// CHECK: sdy.named_computation<"f_1">
// CHECK: sdy.named_computation<"f">
// CHECK: sdy.named_computation<"f_1">

sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = sdy.named_computation<"f">(%x) (%a: tensor<8xf32>) {
    %4 = stablehlo.subtract %a, %a : tensor<8xf32>
    %5 = stablehlo.subtract %a, %4 : tensor<8xf32>
    sdy.return %5 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %1 = sdy.named_computation<"f">(%x) (%a: tensor<8xf32>) {
    %4 = stablehlo.subtract %a, %a : tensor<8xf32>
    %5 = stablehlo.subtract %4, %a : tensor<8xf32>
    sdy.return %5 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %2 = sdy.named_computation<"f">(%x) out_shardings=[<@mesh, [{"x"}]>] (%b: tensor<8xf32>) {
    %4 = stablehlo.subtract %b, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
    %5 = stablehlo.subtract %b, %4 : tensor<8xf32>
    sdy.return %5 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %3 = sdy.named_computation<"f">(%x) (%a: tensor<8xf32>) {
    %4 = stablehlo.subtract %a, %a : tensor<8xf32>
    %5 = stablehlo.subtract %4, %a : tensor<8xf32>
    sdy.return %5 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %1, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
func.func private @f_0(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}

// -----

// A function keeps its symbol and gets another original name. Who calls another function, differs too.

// CHECK-LABEL: func.func @main
// CHECK: func.func private @g(%arg0: tensor<8xf32>) -> tensor<8xf32> {
// CHECK: func.func private @g_0(%arg0: tensor<8xf32>) -> tensor<8xf32> attributes {sdy.original_func_name = "g_1"} {
// CHECK: func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
// CHECK: func.func private @f_0(%arg0: tensor<8xf32>) -> tensor<8xf32> attributes {sdy.original_func_name = "f_1"} {
// CHECK: func.func private @declared(tensor<8xf32>) -> tensor<8xf32> attributes {sdy.original_func_name = "g"}

func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = call @g(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @g_0(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
func.func private @g(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @g_0(%a: tensor<8xf32>) -> tensor<8xf32> attributes {sdy.original_func_name = "g"} {
  %0 = call @f_0(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.abs %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @f_0(%a: tensor<8xf32>) -> tensor<8xf32> attributes {sdy.original_func_name = "f"} {
  %0 = stablehlo.negate %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @declared(tensor<8xf32>) -> tensor<8xf32> attributes {sdy.original_func_name = "g"}

// -----

// Copies stay copies, with all that they call; and other types, constants, blocks and regions are other content.

// CHECK-LABEL: func.func @main
// CHECK: func.func private @g(%arg0: tensor<8xf32>) -> tensor<8xf32> {
// CHECK: func.func private @g_0(%arg0: tensor<8xf32>) -> tensor<8xf32> attributes {sdy.original_func_name = "g"} {
// CHECK: func.func private @f_0(%arg0: tensor<8xf32>) -> tensor<8xf32> attributes {sdy.original_func_name = "f"} {
// CHECK: func.func private @f_1(%arg0: tensor<8xf32>) -> tensor<8xf32> attributes {sdy.original_func_name = "f_2"} {
// CHECK: func.func private @f_4(%arg0: tensor<4xf32>) -> tensor<4xf32> attributes {sdy.original_func_name = "f_3"} {

func.func @main(%x: tensor<8xf32>, %y: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>) {
  %0 = call @g(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @g_0(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = call @f_1(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = call @f_4(%y) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>
}
func.func private @g(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @g_0(%a: tensor<8xf32>) -> tensor<8xf32> attributes {sdy.original_func_name = "g"} {
  %0 = call @f_0(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.constant dense<1.0> : tensor<8xf32>
  %1 = stablehlo.add %a, %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @f_0(%a: tensor<8xf32>) -> tensor<8xf32> attributes {sdy.original_func_name = "f"} {
  %0 = stablehlo.constant dense<1.0> : tensor<8xf32>
  %1 = stablehlo.add %a, %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @f_1(%a: tensor<8xf32>) -> tensor<8xf32> attributes {sdy.original_func_name = "f"} {
  %0 = stablehlo.constant dense<2.0> : tensor<8xf32>
  %1 = stablehlo.add %a, %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @f_4(%a: tensor<4xf32>) -> tensor<4xf32> attributes {sdy.original_func_name = "f"} {
  %0 = stablehlo.constant dense<1.0> : tensor<4xf32>
  %1 = stablehlo.add %a, %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
