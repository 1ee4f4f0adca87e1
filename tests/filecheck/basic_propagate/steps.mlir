// RUN: sdy_opt %s -split-input-file -sdy-basic-propagate | FileCheck %s

// Shardings go in all directions, and sideways from one operand to another; what gets one is open.
sdy.mesh @mesh = <["p"=2, "q"=2, "r"=2]>
// CHECK-LABEL: func.func @dot(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}, %arg1: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q"}]>})
// CHECK-NEXT: %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>}
// CHECK-NEXT: return %0
func.func @dot(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}, %arg1: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q"}]>}) {
  %0 = stablehlo.dot %arg0, %arg1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Where factors want one axis for two dimensions of a tensor, nobody gets it; what agrees is taken, up to there.
// CHECK-LABEL: func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p"}]>}, %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q"}, {?}]>}, %arg3: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q"}]>}, %arg4: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p", "q"}]>}, %arg5: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "r"}, {?}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>}, tensor<8x8xf32>)
// CHECK-NEXT: %0 = stablehlo.dot %arg0, %arg1
// CHECK-NEXT: %1 = stablehlo.dot %arg2, %arg3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>}
// CHECK-NEXT: %2 = stablehlo.dot %arg4, %arg5
// CHECK-NEXT: return %0, %1, %2
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p"}]>},
                %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q"}, {?}]>}, %arg3: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q"}]>},
                %arg4: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p", "q"}]>}, %arg5: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "r"}, {?}]>})
    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.dot %arg0, %arg1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.dot %arg2, %arg3 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.dot %arg4, %arg5 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// Closed dimensions, replicated and unreduced axes stop an axis in the tensor that has them; replicated axes of a tensor
// without the factor do not.
// CHECK-LABEL: func.func @stops(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}], replicated={"p"}>}) -> tensor<8x8xf32>
// CHECK-NEXT: %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {?}]>]>}
// CHECK-NEXT: %1 = stablehlo.cosine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}], replicated={"p"}>]>}
// CHECK-NEXT: %2 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}], unreduced={"p"}>]>}
// CHECK-NEXT: %3 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>}
// CHECK-NEXT: %4:4 = stablehlo.optimization_barrier %0, %1, %2, %3
// CHECK-NEXT: return %4#3
func.func @stops(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}], replicated={"p"}>}) -> tensor<8x8xf32> {
  %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {?}]>]>} : tensor<8x8xf32>
  %1 = stablehlo.cosine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}], replicated={"p"}>]>} : tensor<8x8xf32>
  %2 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}], unreduced={"p"}>]>} : tensor<8x8xf32>
  %3 = stablehlo.dot %arg0, %arg1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %4:4 = stablehlo.optimization_barrier %0, %1, %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  return %4#3 : tensor<8x8xf32>
}

// -----

// An axis is split over the factors of a dimension if it fits; what would need a strided layout is left.
sdy.mesh @mesh = <["p"=4, "q"=4, "r"=3, "s"=12, "t"=2]>
// CHECK-LABEL: func.func @reshapes(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q"}, {}]>}, %arg1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "r"}, {}]>}, %arg2: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"r", "t"}, {}]>}, %arg3: tensor<24x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"s"}, {"q"}]>}, %arg4: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"t"}, {"p"}]>}) -> (tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q":(1)2, ?}]>}, tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}]>}, tensor<32xf32>, tensor<4x6x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"s":(1)4, ?}, {"s":(4)3, ?}, {"q", ?}]>}, tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"t", ?}]>})
// CHECK-NEXT: %0 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", "q":(1)2, ?}]>]>}
// CHECK-NEXT: %1 = stablehlo.reshape %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}]>]>}
// CHECK-NEXT: %2 = stablehlo.reshape %arg2
// CHECK-NEXT: %3 = stablehlo.reshape %arg3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"s":(1)4, ?}, {"s":(4)3, ?}, {"q", ?}]>]>}
// CHECK-NEXT: %4 = stablehlo.reshape %arg4 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"t", ?}]>]>}
// CHECK-NEXT: return %0, %1, %2, %3, %4
func.func @reshapes(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q"}, {}]>}, %arg1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "r"}, {}]>},
                    %arg2: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"r", "t"}, {}]>}, %arg3: tensor<24x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"s"}, {"q"}]>},
                    %arg4: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"t"}, {"p"}]>}) -> (tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<4x6x4xf32>, tensor<32xf32>) {
  %0 = stablehlo.reshape %arg0 : (tensor<8x4xf32>) -> tensor<32xf32>
  %1 = stablehlo.reshape %arg1 : (tensor<8x4xf32>) -> tensor<32xf32>
  %2 = stablehlo.reshape %arg2 : (tensor<8x4xf32>) -> tensor<32xf32>
  %3 = stablehlo.reshape %arg3 : (tensor<24x4xf32>) -> tensor<4x6x4xf32>
  %4 = stablehlo.reshape %arg4 : (tensor<4x8xf32>) -> tensor<32xf32>
  return %0, %1, %2, %3, %4 : tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<4x6x4xf32>, tensor<32xf32>
}

// -----

// All meshes of a step must be equal, in the order of devices too; the first name is written. The empty mesh agrees with all,
// a single device with none.
sdy.mesh @empty_mesh = <[]>
sdy.mesh @device = <[], device_ids=[0]>
sdy.mesh @m1 = <["p"=2, "q"=2]>
sdy.mesh @m2 = <["p"=2, "q"=2]>
sdy.mesh @m3 = <["p"=2, "q"=2], device_ids=[3, 2, 1, 0]>
// CHECK-LABEL: func.func @meshes(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m2, [{"p", ?}, {"q", ?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m2, [{"p", ?}, {"q", ?}]>}, %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m3, [{?}, {"q", ?}]>}, %arg3: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m3, [{?}, {"q", ?}]>}, %arg4: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@device, []>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m2, [{"p", ?}, {"q", ?}]>}, tensor<8x8xf32>, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m3, [{?}, {"q", ?}]>}, tensor<8x8xf32>)
// CHECK-NEXT: %0 = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@m2, [{"p", ?}, {"q", ?}]>]>}
// CHECK-NEXT: %1 = stablehlo.add %arg0, %arg2
// CHECK-NEXT: %2 = stablehlo.add %arg3, %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@m3, [{?}, {"q", ?}]>]>}
// CHECK-NEXT: %3 = stablehlo.add %arg4, %arg2
// CHECK-NEXT: return %0, %1, %2, %3
func.func @meshes(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m2, [{"p", ?}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{?}, {"q", ?}]>},
                  %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m3, [{?}, {"q", ?}]>}, %arg3: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@empty_mesh, [{?}, {?}]>},
                  %arg4: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@device, []>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
  %1 = stablehlo.add %arg0, %arg2 : tensor<8x8xf32>
  %2 = stablehlo.add %arg3, %arg2 : tensor<8x8xf32>
  %3 = stablehlo.add %arg4, %arg2 : tensor<8x8xf32>
  return %0, %1, %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// A value that is used twice takes what was written last.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @twice(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"q", ?}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>})
// CHECK-NEXT: %0 = stablehlo.dot %arg0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {"q", ?}]>]>}
// CHECK-NEXT: return %0
func.func @twice(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.dot %arg0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {"q", ?}]>]>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// An update drops priorities, a value without one keeps them. A scalar never gets a sharding.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @priorities(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}p1, {?}]>}, %arg1: tensor<f32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>})
// CHECK-NEXT: %0 = stablehlo.broadcast_in_dim %arg1, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>}
// CHECK-NEXT: %1 = stablehlo.add %arg0, %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>}
// CHECK-NEXT: return %1
func.func @priorities(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}p1, {?}]>}, %arg1: tensor<f32>) -> tensor<8x8xf32> {
  %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
  %1 = stablehlo.add %arg0, %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}p3]>]>} : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// Dead code propagates before it goes; constraints, groups and calls stay, unused or not.
sdy.mesh @mesh = <["p"=2]>
// CHECK-LABEL: func.func @dead(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>}, %arg2: tensor<8x8xf32>)
// CHECK-NEXT: %0 = sdy.sharding_constraint %arg1 <@mesh, [{"p", ?}, {?}]>
// CHECK-NEXT: %1 = stablehlo.custom_call @effect(%arg2) {has_side_effect = true}
// CHECK-NEXT: return
func.func @dead(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}, %arg1: tensor<8x8xf32>, %arg2: tensor<8x8xf32>) {
  %0 = stablehlo.sine %arg0 : tensor<8x8xf32>
  %1 = stablehlo.add %0, %arg1 : tensor<8x8xf32>
  %2 = stablehlo.cosine %1 : tensor<8x8xf32>
  %3 = sdy.sharding_constraint %arg1 <@mesh, [{?}, {?}]> : tensor<8x8xf32>
  %4 = stablehlo.custom_call @effect(%arg2) {has_side_effect = true} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = stablehlo.custom_call @Sharding(%arg2) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %6 = stablehlo.while(%iterArg = %arg2) : tensor<8x8xf32>
  cond {
    %7 = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %7 : tensor<i1>
  } do {
    stablehlo.return %iterArg : tensor<8x8xf32>
  }
  return
}

// -----

// A change is followed at once, uses last pushed first, before the sweep goes on: here `sine` and `transpose` come before
// `multiply`, which finds a conflict.
sdy.mesh @mesh = <["p"=4, "q"=2]>
// CHECK-LABEL: func.func @order(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p", ?}]>}) -> (tensor<16x16xf32>, tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p", ?}]>})
// CHECK-NEXT: %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"p", ?}]>]>}
// CHECK-NEXT: %1 = stablehlo.transpose %0, dims = [1, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}, {?}]>]>}
// CHECK-NEXT: %2 = stablehlo.multiply %arg0, %1
// CHECK-NEXT: %3 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"p", ?}]>]>}
// CHECK-NEXT: return %2, %3
func.func @order(%arg0: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %0 = stablehlo.sine %arg0 : tensor<16x16xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %2 = stablehlo.multiply %arg0, %1 : tensor<16x16xf32>
  %3 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"p", ?}]>]>} : tensor<16x16xf32>
  return %2, %3 : tensor<16x16xf32>, tensor<16x16xf32>
}
