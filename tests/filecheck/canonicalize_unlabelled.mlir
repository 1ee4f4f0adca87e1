// RUN: sdy_opt %s -canonicalize | FileCheck %s

sdy.mesh @mesh = <["a"=2, "b"=4, "o"=1]>

// A manual computation takes what its body uses.
// CHECK-LABEL: func.func @inputs
// CHECK-NEXT: %0 = sdy.manual_computation(%arg1) in_shardings=[<@mesh, [{"b"}]>] out_shardings=[<@mesh, [{"b"}]>] manual_axes={"a", "b"} (%arg2: tensor<2xf32>) {
// CHECK-NEXT: %1 = stablehlo.negate %arg2
// CHECK-NEXT: sdy.return %1
// CHECK: return %0
func.func @inputs(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%a, %b) in_shardings=[<@mesh, [{"a"}]>, <@mesh, [{"b"}]>] out_shardings=[<@mesh, [{"b"}]>] manual_axes={"a", "b"} (%x: tensor<4xf32>, %y: tensor<2xf32>) {
    %1 = stablehlo.negate %y : tensor<2xf32>
    sdy.return %1 : tensor<2xf32>
  } : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// One that takes nothing, gives nothing and does nothing goes.
// CHECK-LABEL: func.func @empty
// CHECK-NEXT: return %arg0
func.func @empty(%a: tensor<8xf32>) -> tensor<8xf32> {
  sdy.manual_computation(%a) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[] manual_axes={"a"} (%x: tensor<4xf32>) {
    sdy.return
  } : (tensor<8xf32>) -> ()
  return %a : tensor<8xf32>
}

// One along axes of size 1 is what it holds, but not directly in a function.
// CHECK-LABEL: func.func @single
// CHECK-NEXT: %0 = sdy.named_computation<"foo">(%arg0) (%arg1: tensor<8xf32>) {
// CHECK-NEXT: %2 = stablehlo.negate %arg1
// CHECK-NEXT: sdy.return %2
// CHECK: %1 = sdy.manual_computation(%0)
func.func @single(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.named_computation<"foo">(%a) (%b: tensor<8xf32>) {
    %1 = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"o"}]>] out_shardings=[<@mesh, [{"o"}]>] manual_axes={"o"} (%x: tensor<8xf32>) {
      %2 = stablehlo.negate %x : tensor<8xf32>
      sdy.return %2 : tensor<8xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %3 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"o"}]>] out_shardings=[<@mesh, [{"o"}]>] manual_axes={"o"} (%x: tensor<8xf32>) {
    %2 = stablehlo.negate %x : tensor<8xf32>
    sdy.return %2 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}

// What was resharded before, also in another shape, is used again.
// CHECK-LABEL: func.func @again
// CHECK-NEXT: %0 = stablehlo.reshape %arg0
// CHECK-NEXT: %1 = sdy.reshard %0 <@mesh, [{"a"}, {"b"}]>
// CHECK-NEXT: %2 = stablehlo.reshape %1 : (tensor<2x4xf32>) -> tensor<8xf32>
// CHECK-NEXT: %3 = sdy.reshard %arg0 <@mesh, [{"b", "a"}]>
// CHECK-NEXT: return %1, %2, %2, %3
func.func @again(%a: tensor<8xf32>) -> (tensor<2x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.reshape %a : (tensor<8xf32>) -> tensor<2x4xf32>
  %1 = sdy.reshard %0 <@mesh, [{"a"}, {"b"}]> : tensor<2x4xf32>
  %2 = sdy.reshard %a <@mesh, [{"a", "b"}]> : tensor<8xf32>
  %3 = sdy.reshard %a <@mesh, [{"b", "a"}]> : tensor<8xf32>
  return %1, %2, %2, %3 : tensor<2x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// Through a transpose.
// CHECK-LABEL: func.func @turned
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{"a"}, {"b"}]>
// CHECK-NEXT: %1 = stablehlo.transpose %0, dims = [1, 0]
// CHECK-NEXT: return %0, %1
func.func @turned(%a: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.reshard %a <@mesh, [{"a"}, {"b"}]> : tensor<8x8xf32>
  %2 = sdy.reshard %0 <@mesh, [{"b"}, {"a"}]> : tensor<8x8xf32>
  return %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>
}

// The rewrites of both labels.
// CHECK-LABEL: func.func @labels
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{"b"}]>
// CHECK-NEXT: return %0
func.func @labels(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<8xf32> {
  %0 = sdy.all_gather [{}] %a out_sharding=<@mesh, [{}]> : tensor<8xf32>
  %1 = sdy.reshard %0 <@mesh, [{"a"}]> : tensor<8xf32>
  %2 = sdy.reshard %1 <@mesh, [{"b"}]> : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// A branch that a constant chooses; there is no branch 7.
// CHECK-LABEL: func.func @branches
// CHECK-NEXT: %c = stablehlo.constant dense<7>
// CHECK-NEXT: %0 = stablehlo.negate %arg0
// CHECK-NEXT: %1 = "stablehlo.case"(%c)
func.func @branches(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %seven = stablehlo.constant dense<7> : tensor<i32>
  %0 = "stablehlo.case"(%one) ({ stablehlo.return %a : tensor<8xf32> }, {
    %1 = stablehlo.negate %a : tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  %2 = "stablehlo.case"(%seven) ({ stablehlo.return %a : tensor<8xf32> }, { stablehlo.return %0 : tensor<8xf32> }) : (tensor<i32>) -> tensor<8xf32>
  return %0, %2 : tensor<8xf32>, tensor<8xf32>
}
