// RUN: sdy_opt %s -split-input-file -sdy-apply-sharding-constraints | FileCheck %s

sdy.mesh @mesh = <["p"=2, "q"=2]>

// A closed sharding goes onto the input, on an argument too; the constraint gets its rule. An open dimension leaves the
// input as it is.
// CHECK-LABEL: func.func @closed(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {}], unreduced={"q"}>}, %arg1: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>)
// CHECK-NEXT: %0 = sdy.sharding_constraint %arg0 <@mesh, [{"p"}, {}], unreduced={"q"}> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=16}>}
// CHECK-NEXT: %1 = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"q"}]>]>}
// CHECK-NEXT: %2 = sdy.sharding_constraint %1 <@mesh, [{}, {"q"}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=16}, custom>}
// CHECK-NEXT: %3 = sdy.sharding_constraint %arg1 <@mesh, [{}, {"q", ?}]>
// CHECK-NEXT: return %0, %2, %3
func.func @closed(%arg0: tensor<8x16xf32>, %arg1: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"p"}, {}], unreduced={"q"}> : tensor<8x16xf32>
  %1 = stablehlo.add %arg0, %arg1 : tensor<8x16xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{}, {"q"}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=16}, custom>} : tensor<8x16xf32>
  %3 = sdy.sharding_constraint %arg1 <@mesh, [{}, {"q", ?}]> : tensor<8x16xf32>
  return %0, %2, %3 : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>
}

// A scalar takes a sharding without dimensions.
// CHECK-LABEL: func.func @scalar(
// CHECK-NEXT: %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>}
// CHECK-NEXT: %1 = sdy.sharding_constraint %0 <@mesh, []> {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([])>}
// CHECK-NEXT: return %1
func.func @scalar(%arg0: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %arg0 : tensor<f32>
  %1 = sdy.sharding_constraint %0 <@mesh, []> : tensor<f32>
  return %1 : tensor<f32>
}

// A dangling constraint counts, and so does a unanimous pair; constraints that disagree do not.
// CHECK-LABEL: func.func @several(
// CHECK-NEXT: %0 = stablehlo.sine %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}, {}]>]>}
// CHECK-NEXT: %1 = sdy.sharding_constraint %0 <@mesh, [{"p"}, {}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>}
// CHECK-NEXT: %2 = sdy.sharding_constraint %0 <@mesh, [{"p"}, {}]>
// CHECK-NEXT: %3 = stablehlo.cosine %arg1
// CHECK-NEXT: %4 = sdy.sharding_constraint %3 <@mesh, [{"p"}, {}]>
// CHECK-NEXT: %5 = sdy.sharding_constraint %3 <@mesh, [{"p"}, {}], replicated={"q"}>
// CHECK-NEXT: return %2, %3
func.func @several(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.sine %arg0 : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"p"}, {}]> : tensor<8x8xf32>
  %2 = sdy.sharding_constraint %0 <@mesh, [{"p"}, {}]> : tensor<8x8xf32>
  %3 = stablehlo.cosine %arg1 : tensor<8x8xf32>
  %4 = sdy.sharding_constraint %3 <@mesh, [{"p"}, {}]> : tensor<8x8xf32>
  %5 = sdy.sharding_constraint %3 <@mesh, [{"p"}, {}], replicated={"q"}> : tensor<8x8xf32>
  return %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>
}

// What has a sharding keeps it.
// CHECK-LABEL: func.func @has_sharding(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}p1, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}], replicated={"q"}>}, %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>)
// CHECK-NEXT: %0 = sdy.sharding_constraint %arg0 <@mesh, [{"p"}, {}]>
// CHECK-NEXT: %1 = sdy.sharding_constraint %arg1 <@mesh, [{"p"}, {}]>
// CHECK-NEXT: %2 = sdy.sharding_constraint %arg2 <@mesh, [{"p"}, {}]>
// CHECK-NEXT: return %0, %1, %2
func.func @has_sharding(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}p1, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}], replicated={"q"}>},
                        %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"p"}, {}]> : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %arg1 <@mesh, [{"p"}, {}]> : tensor<8x8xf32>
  %2 = sdy.sharding_constraint %arg2 <@mesh, [{"p"}, {}]> : tensor<8x8xf32>
  return %0, %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// The first result of an op with several: the others become open.
// CHECK-LABEL: func.func @results(
// CHECK-NEXT: %0:2 = stablehlo.custom_call @foo(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}]>, <@mesh, [{"p"}]>]>}
// CHECK-NEXT: %1 = sdy.sharding_constraint %0#1 <@mesh, [{"p"}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}>}
// CHECK-NEXT: return %0#0, %1
func.func @results(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xi32>) {
  %0:2 = stablehlo.custom_call @foo(%arg0) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xi32>)
  %1 = sdy.sharding_constraint %0#1 <@mesh, [{"p"}]> : tensor<8xi32>
  return %0#0, %1 : tensor<8xf32>, tensor<8xi32>
}

// Arguments of a reducer can have no sharding.
// CHECK-LABEL: func.func @no_holder(
// CHECK-NEXT: %0 = stablehlo.reduce(%arg0 init: %arg1) across dimensions = [0]
// CHECK-NEXT: reducer(%arg2: tensor<f32>, %arg3: tensor<f32>)  {
// CHECK-NEXT: %1 = sdy.sharding_constraint %arg2 <@mesh, []>
// CHECK-NEXT: %2 = stablehlo.add %1, %arg3
// CHECK-NEXT: stablehlo.return %2
// CHECK-NEXT: }
// CHECK-NEXT: return %0
func.func @no_holder(%arg0: tensor<8xf32>, %arg1: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.reduce(%arg0 init: %arg1) across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
   reducer(%arg2: tensor<f32>, %arg3: tensor<f32>) {
    %1 = sdy.sharding_constraint %arg2 <@mesh, []> : tensor<f32>
    %2 = stablehlo.add %1, %arg3 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }
  return %0 : tensor<f32>
}

// CHECK-LABEL: func.func @main()
func.func @main() {
  return
}

// -----

// NEWER: before, only an absent sharding counted as none.
// A fully open sharding says nothing: it is overwritten, on any mesh, also that of another constraint. On a scalar it does
// say something, unless the op has several results.
sdy.mesh @empty_mesh = <[]>
sdy.mesh @mesh = <["p"=2, "q"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p"}, {}]>}, %arg1: tensor<8x8xf32>, %arg2: tensor<f32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>, tensor<f32>)
// CHECK-NEXT: %0 = sdy.sharding_constraint %arg0 <@mesh, [{"p"}, {}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>}
// CHECK-NEXT: %1 = sdy.sharding_constraint %arg1 <@mesh, [{}, {"q"}]>
// CHECK-NEXT: %2 = sdy.sharding_constraint %1 <@mesh, [{}, {"q"}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>}
// CHECK-NEXT: %3 = stablehlo.sine %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@empty_mesh, []>]>}
// CHECK-NEXT: %4 = sdy.sharding_constraint %3 <@mesh, [], replicated={"p"}>
// CHECK-NEXT: %5:2 = stablehlo.custom_call @foo(%arg2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [], replicated={"p"}>, <@empty_mesh, []>]>}
// CHECK-NEXT: %6 = sdy.sharding_constraint %5#0 <@mesh, [], replicated={"p"}> {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([])>}
// CHECK-NEXT: return %0, %2, %4, %6
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@empty_mesh, [{?}, {?}]>}, %arg1: tensor<8x8xf32>, %arg2: tensor<f32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>, tensor<f32>) {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"p"}, {}]> : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %arg1 <@mesh, [{?}, {?}]> : tensor<8x8xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{}, {"q"}]> : tensor<8x8xf32>
  %3 = stablehlo.sine %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@empty_mesh, []>]>} : tensor<f32>
  %4 = sdy.sharding_constraint %3 <@mesh, [], replicated={"p"}> : tensor<f32>
  %5:2 = stablehlo.custom_call @foo(%arg2) {sdy.sharding = #sdy.sharding_per_value<[<@empty_mesh, []>, <@empty_mesh, []>]>} : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
  %6 = sdy.sharding_constraint %5#0 <@mesh, [], replicated={"p"}> : tensor<f32>
  return %0, %2, %4, %6 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>, tensor<f32>
}
