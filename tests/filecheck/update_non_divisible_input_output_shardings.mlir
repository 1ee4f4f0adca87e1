// RUN: sdy_opt %s -sdy-update-non-divisible-input-output-shardings | FileCheck %s

sdy.mesh @mesh = <["p"=4, "q"=2, "r"=3]>

// A dimension that its axes do not divide keeps those in front that do, the last perhaps in part, and loses its priority.
// What divides stays as it is. Ops inside the function are not looked at.
// CHECK-LABEL: func.func @arguments(%arg0: tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p":(1)2, ?}, {}]>}, %arg1: tensor<6x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q", ?}, {"r", ?}p1]>}, %arg2: tensor<0x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {}], replicated={"r"}>}, %arg3: tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p":(2)2, ?}, {?}], unreduced={"q"}>}, %arg4: !stablehlo.token {sdy.sharding = #sdy.sharding<@mesh, []>}) -> (tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p", ?}]>})
// CHECK-NEXT: %0 = stablehlo.abs %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"p", "r", ?}]>]>}
// CHECK-NEXT: return %0
func.func @arguments(%arg0: tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"r", "q"}]>}, %arg1: tensor<6x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q", "p", ?}p3, {"r", ?}p1]>},
                     %arg2: tensor<0x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {"q"}], replicated={"r"}>}, %arg3: tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p":(2)2, ?}, {"r", ?}], unreduced={"q"}>}, %arg4: !stablehlo.token {sdy.sharding = #sdy.sharding<@mesh, []>})
    -> (tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p", "r", ?}]>}) {
  %0 = stablehlo.abs %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"p", "r", ?}]>]>} : tensor<6x8xf32>
  return %0 : tensor<6x8xf32>
}

// Results of calls, and both sides of manual computations, which look at local and at global sizes.
// CHECK-LABEL: func.func @inner(
// CHECK-NEXT: %0 = call @arguments2(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p":(1)2}, {}]>]>}
// CHECK-NEXT: %1 = call @arguments2(%0)
// CHECK-NEXT: %2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{"q", "r", ?}, {"p", ?}]>] out_shardings=[<@mesh, [{"q", ?}, {?}]>] manual_axes={"q"} (%arg1: tensor<3x8xf32>) {
// CHECK-NEXT: sdy.return %arg1
// CHECK-NEXT: }
// CHECK-NEXT: return %2
func.func @inner(%arg0: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %0 = call @arguments2(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}, {}]>]>} : (tensor<6x8xf32>) -> tensor<6x8xf32>
  %1 = call @arguments2(%0) : (tensor<6x8xf32>) -> tensor<6x8xf32>
  %2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{"q", "r", ?}, {"p", ?}]>] out_shardings=[<@mesh, [{"q", "p", ?}, {?}]>] manual_axes={"q"} (%arg1: tensor<3x8xf32>) {
    sdy.return %arg1 : tensor<3x8xf32>
  } : (tensor<6x8xf32>) -> tensor<6x8xf32>
  return %2 : tensor<6x8xf32>
}
func.func private @arguments2(%arg0: tensor<6x8xf32>) -> tensor<6x8xf32> {
  return %arg0 : tensor<6x8xf32>
}
