// RUN: sdy_opt %s -sdy-manual-axes-cleanup | FileCheck %s

sdy.mesh @empty_mesh = <[]>
sdy.mesh @mesh = <["p"=2, "q"=2, "r"=4]>

// Manual axes are put into the order of the mesh. Every tensor mentions all of them afterwards, as replicated ones if
// need be; what was on the empty mesh moves to the mesh of the others. Unreduced axes count as mentioned; tokens do not
// take part.
// CHECK-LABEL: func.func @mentions(
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0, %arg1, %arg2) in_shardings=[<@mesh, [{"p", "r":(1)2}, {?}], replicated={"q"}>, <@mesh, []>, <@mesh, [], replicated={"p", "q"}>] out_shardings=[<@mesh, [{"q", ?}, {?}], unreduced={"p"}>] manual_axes={"p", "q"} (%arg3: tensor<4x8xf32>, %arg4: !stablehlo.token, %arg5: tensor<f32>) {
// CHECK-NEXT: sdy.return %arg3
// CHECK-NEXT: }
// CHECK-NEXT: return %0
func.func @mentions(%arg0: tensor<8x8xf32>, %arg1: !stablehlo.token, %arg2: tensor<f32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%arg0, %arg1, %arg2) in_shardings=[<@mesh, [{"p", "r":(1)2}, {?}]>, <@mesh, []>, <@empty_mesh, []>] out_shardings=[<@mesh, [{"q", ?}, {?}], unreduced={"p"}>] manual_axes={"q", "p"} (%arg3: tensor<4x8xf32>, %arg4: !stablehlo.token, %arg5: tensor<f32>) {
    sdy.return %arg3 : tensor<4x8xf32>
  } : (tensor<8x8xf32>, !stablehlo.token, tensor<f32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Only the parts of an axis that are missing are added, merged with what is there.
// CHECK-LABEL: func.func @parts(
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"r":(2)2}, {}], replicated={"r":(1)2}>] out_shardings=[<@mesh, [{}, {}], replicated={"q", "r"}>] manual_axes={"r"} (%arg1: tensor<4x8xf32>) {
// CHECK-NEXT: %1 = stablehlo.concatenate %arg1, %arg1, dim = 0
// CHECK-NEXT: sdy.return %1
// CHECK-NEXT: }
// CHECK-NEXT: return %0
func.func @parts(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"r":(2)2}, {}]>] out_shardings=[<@mesh, [{}, {}], replicated={"q", "r":(1)2}>] manual_axes={"r"} (%arg1: tensor<4x8xf32>) {
    %1 = stablehlo.concatenate %arg1, %arg1, dim = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    sdy.return %1 : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Every manual computation, also one inside another.
// CHECK-LABEL: func.func @nested(
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}, {}], replicated={"p"}>] out_shardings=[<@mesh, [{}, {}], replicated={"p"}>] manual_axes={"p"} (%arg1: tensor<8x8xf32>) {
// CHECK-NEXT: %1 = sdy.manual_computation(%arg1) in_shardings=[<@mesh, [{}, {"q"}], replicated={"r"}>] out_shardings=[<@mesh, [{}, {"q"}], replicated={"r"}>] manual_axes={"q", "r"} (%arg2: tensor<8x4xf32>) {
// CHECK-NEXT: sdy.return %arg2
// CHECK-NEXT: }
// CHECK-NEXT: sdy.return %1
// CHECK-NEXT: }
// CHECK-NEXT: return %0
func.func @nested(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"p"} (%arg1: tensor<8x8xf32>) {
    %1 = sdy.manual_computation(%arg1) in_shardings=[<@mesh, [{}, {"q"}]>] out_shardings=[<@mesh, [{}, {"q"}]>] manual_axes={"r", "q"} (%arg2: tensor<8x4xf32>) {
      sdy.return %arg2 : tensor<8x4xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    sdy.return %1 : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// On the empty mesh alone there is nothing to add; without in- and out-shardings neither, if the body is empty.
// CHECK-LABEL: func.func @nothing(
// CHECK-NEXT: %0 = sdy.manual_computation(%arg0) in_shardings=[<@empty_mesh, [{}]>] out_shardings=[<@empty_mesh, [{}]>] manual_axes={} (%arg1: tensor<8xf32>) {
// CHECK-NEXT: sdy.return %arg1
// CHECK-NEXT: }
// CHECK-NEXT: sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={"p"} () {
// CHECK-NEXT: sdy.return
// CHECK-NEXT: }
// CHECK-NEXT: return %0
func.func @nothing(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@empty_mesh, [{}]>] out_shardings=[<@empty_mesh, [{}]>] manual_axes={} (%arg1: tensor<8xf32>) {
    sdy.return %arg1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={"p"} () {
    sdy.return
  } : () -> ()
  return %0 : tensor<8xf32>
}
