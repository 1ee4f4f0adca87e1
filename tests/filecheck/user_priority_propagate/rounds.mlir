// RUN: sdy_opt %s -split-input-file -sdy-user-priority-propagate | FileCheck %s

// One round per priority: until its round, a dimension is closed and its axes are kept from the tensor's other dimensions.
sdy.mesh @mesh = <["p"=2, "q"=2, "r"=2]>
// CHECK-LABEL: func.func @rounds(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {"q", ?}], replicated={"r"}>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"r", ?}, {"q", ?}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"r", ?}, {"p", ?}]>})
// CHECK-NEXT: %0 = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"r", ?}, {"q", ?}]>]>}
// CHECK-NEXT: %1 = stablehlo.sine %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"r", ?}, {"p", ?}]>]>}
// CHECK-NEXT: return %1
func.func @rounds(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}p2, {"q", ?}p0], replicated={"r"}>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"r", ?}p1, {?}p3]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
  %1 = stablehlo.sine %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"p", ?}p7]>]>} : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// The smaller number wins, also if it comes second.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @batch_before_model(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p"}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p", ?}]>})
// CHECK-NEXT: %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"p", ?}]>]>}
// CHECK-NEXT: return %0
func.func @batch_before_model(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}p1, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p"}p0]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.dot %arg0, %arg1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// Edges, constraints and results of main take part; what a loop has on itself keeps its priority.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @holders(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {"q", ?}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p", ?}]>})
// CHECK-NEXT: %0 = stablehlo.while(%iterArg = %arg0) : tensor<8x8xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}p1, {?}]>]>}
// CHECK-NEXT: cond {
// CHECK-NEXT: %c = stablehlo.constant dense<false>
// CHECK-NEXT: stablehlo.return %c
// CHECK-NEXT: } do {
// CHECK-NEXT: stablehlo.return %iterArg
// CHECK-NEXT: }
// CHECK-NEXT: %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"p", ?}, {"q", ?}]>
// CHECK-NEXT: %2 = sdy.sharding_constraint %1 <@mesh, [{"p", ?}, {"q", ?}]>
// CHECK-NEXT: return %2
func.func @holders(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p", ?}p2]>}) {
  %0 = stablehlo.while(%iterArg = %arg0) : tensor<8x8xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p", ?}p1, {?}]>]>}
  cond {
    %3 = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    stablehlo.return %iterArg : tensor<8x8xf32>
  }
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"p", ?}p1, {?}]> : tensor<8x8xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{?}, {"q", ?}p3]> : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// Members of a group are masked alike.
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @group(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}, {?}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"p", ?}]>})
// CHECK-NEXT: sdy.sharding_group %arg0 group_id=0
// CHECK-NEXT: sdy.sharding_group %arg1 group_id=0
// CHECK-NEXT: %0 = stablehlo.sine %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"p", ?}]>]>}
// CHECK-NEXT: return %0
func.func @group(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", ?}p1, {?}]>}, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> {
  sdy.sharding_group %arg0 group_id=0 : tensor<8x8xf32>
  sdy.sharding_group %arg1 group_id=0 : tensor<8x8xf32>
  %0 = stablehlo.sine %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"p", ?}]>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// Sub-axes are masked and restored too.
sdy.mesh @mesh = <["p"=4, "q"=2]>
// CHECK-LABEL: func.func @sub_axes(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p":(2)2, ?}, {"p":(1)2, ?}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p":(1)2, ?}, {"p":(2)2, ?}]>})
// CHECK-NEXT: %0 = stablehlo.transpose %arg0, dims = [1, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p":(1)2, ?}, {"p":(2)2, ?}]>]>}
// CHECK-NEXT: return %0
func.func @sub_axes(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p":(2)2, ?}p1, {"p":(1)2, ?}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
