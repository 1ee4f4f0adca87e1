// RUN: sdy_opt %s -split-input-file -pyshardy-gather-before | FileCheck %s

// What the result loses, the operand loses before: one gather in place of an all-to-all and one.
// CHECK: sdy.mesh @mesh = <["a"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<2x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<2x3x2xf32> {
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{}, {}]> : tensor<2x6xf32>
// CHECK-NEXT: %1 = stablehlo.reshape %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, jk])->([i, j, k]) {i=2, j=3, k=2}>} : (tensor<2x6xf32>) -> tensor<2x3x2xf32>
// CHECK-NEXT: %2 = sdy.reshard %1 <@mesh, [{}, {}, {}]> : tensor<2x3x2xf32>
// CHECK-NEXT: return %2 : tensor<2x3x2xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<2x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<2x3x2xf32> {
  %0 = sdy.reshard %x <@mesh, [{"a"}, {}]> : tensor<2x6xf32>
  %1 = stablehlo.reshape %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, jk])->([i, j, k]) {i=2, j=3, k=2}>} : (tensor<2x6xf32>) -> tensor<2x3x2xf32>
  %2 = sdy.reshard %1 <@mesh, [{}, {}, {}]> : tensor<2x3x2xf32>
  return %2 : tensor<2x3x2xf32>
}

// -----

// The result is resharded by the same axis: moving it twice sends less than gathering.
// CHECK: sdy.mesh @mesh = <["a"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<2x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<2x3x2xf32> {
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{"a"}, {}]> : tensor<2x6xf32>
// CHECK-NEXT: %1 = stablehlo.reshape %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, jk])->([i, j, k]) {i=2, j=3, k=2}>} : (tensor<2x6xf32>) -> tensor<2x3x2xf32>
// CHECK-NEXT: %2 = sdy.reshard %1 <@mesh, [{}, {}, {"a"}]> : tensor<2x3x2xf32>
// CHECK-NEXT: return %2 : tensor<2x3x2xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<2x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<2x3x2xf32> {
  %0 = sdy.reshard %x <@mesh, [{"a"}, {}]> : tensor<2x6xf32>
  %1 = stablehlo.reshape %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, jk])->([i, j, k]) {i=2, j=3, k=2}>} : (tensor<2x6xf32>) -> tensor<2x3x2xf32>
  %2 = sdy.reshard %1 <@mesh, [{}, {}, {"a"}]> : tensor<2x3x2xf32>
  return %2 : tensor<2x3x2xf32>
}

// -----

// The result is so much smaller that it is gathered, not the operand.
// CHECK: sdy.mesh @mesh = <["a"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<2x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<2x1xf32> {
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{"a"}, {}]> : tensor<2x6xf32>
// CHECK-NEXT: %1 = stablehlo.slice %0 [0:2, 2:3] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=2, j=6} permutation={j}>} : (tensor<2x6xf32>) -> tensor<2x1xf32>
// CHECK-NEXT: %2 = sdy.reshard %1 <@mesh, [{}, {}]> : tensor<2x1xf32>
// CHECK-NEXT: return %2 : tensor<2x1xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<2x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<2x1xf32> {
  %0 = sdy.reshard %x <@mesh, [{"a"}, {}]> : tensor<2x6xf32>
  %1 = stablehlo.slice %0 [0:2, 2:3] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=2, j=6} permutation={j}>} : (tensor<2x6xf32>) -> tensor<2x1xf32>
  %2 = sdy.reshard %1 <@mesh, [{}, {}]> : tensor<2x1xf32>
  return %2 : tensor<2x1xf32>
}

// -----

// Something else uses the result as it is sharded.
// CHECK: sdy.mesh @mesh = <["a"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<2x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> (tensor<2x3x2xf32>, tensor<2x3x2xf32>) {
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{"a"}, {}]> : tensor<2x6xf32>
// CHECK-NEXT: %1 = stablehlo.reshape %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, jk])->([i, j, k]) {i=2, j=3, k=2}>} : (tensor<2x6xf32>) -> tensor<2x3x2xf32>
// CHECK-NEXT: %2 = sdy.reshard %1 <@mesh, [{}, {}, {}]> : tensor<2x3x2xf32>
// CHECK-NEXT: %3 = stablehlo.negate %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}, {}]>]>} : tensor<2x3x2xf32>
// CHECK-NEXT: return %2, %3 : tensor<2x3x2xf32>, tensor<2x3x2xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<2x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> (tensor<2x3x2xf32>, tensor<2x3x2xf32>) {
  %0 = sdy.reshard %x <@mesh, [{"a"}, {}]> : tensor<2x6xf32>
  %1 = stablehlo.reshape %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, jk])->([i, j, k]) {i=2, j=3, k=2}>} : (tensor<2x6xf32>) -> tensor<2x3x2xf32>
  %2 = sdy.reshard %1 <@mesh, [{}, {}, {}]> : tensor<2x3x2xf32>
  %3 = stablehlo.negate %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}, {}]>]>} : tensor<2x3x2xf32>
  return %2, %3 : tensor<2x3x2xf32>, tensor<2x3x2xf32>
}

// -----

// What is left of a dimension is one axis, where the lost one stood between its parts.
// CHECK: sdy.mesh @mesh = <["a"=4, "b"=2]>
// CHECK: %0 = sdy.reshard %arg0 <@mesh, [{"a"}, {}]> : tensor<8x4xf32>
// CHECK-NEXT: %1 = stablehlo.reshape %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, jk])->([i, j, k]) {i=8, j=2, k=2}>} : (tensor<8x4xf32>) -> tensor<8x2x2xf32>
// CHECK-NEXT: %2 = sdy.reshard %1 <@mesh, [{"a"}, {}, {}]> : tensor<8x2x2xf32>
// CHECK-NEXT: return %2 : tensor<8x2x2xf32>
sdy.mesh @mesh = <["a"=4, "b"=2]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> tensor<8x2x2xf32> {
  %0 = sdy.reshard %x <@mesh, [{"a":(1)2, "b", "a":(2)2}, {}]> : tensor<8x4xf32>
  %1 = stablehlo.reshape %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a":(1)2, "b", "a":(2)2}, {}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, jk])->([i, j, k]) {i=8, j=2, k=2}>} : (tensor<8x4xf32>) -> tensor<8x2x2xf32>
  %2 = sdy.reshard %1 <@mesh, [{"a"}, {}, {}]> : tensor<8x2x2xf32>
  return %2 : tensor<8x2x2xf32>
}
