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

// -----

// A broadcast is larger than what it repeats: that is gathered, not the result.
// CHECK: sdy.mesh @mesh = <["a"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<6x5xf32> {
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{}]> : tensor<6xf32>
// CHECK-NEXT: %1 = stablehlo.broadcast_in_dim %0, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i, j]) {i=6, j=5}>} : (tensor<6xf32>) -> tensor<6x5xf32>
// CHECK-NEXT: %2 = sdy.reshard %1 <@mesh, [{}, {}]> : tensor<6x5xf32>
// CHECK-NEXT: return %2 : tensor<6x5xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<6x5xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i, j]) {i=6, j=5}>} : (tensor<6xf32>) -> tensor<6x5xf32>
  %1 = sdy.reshard %0 <@mesh, [{}, {}]> : tensor<6x5xf32>
  return %1 : tensor<6x5xf32>
}

// -----

// What a pad only cuts is gathered after it.
// CHECK: sdy.mesh @mesh = <["a"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %arg1: tensor<f32>) -> tensor<3xf32> {
// CHECK-NEXT: %0 = stablehlo.pad %arg0, %arg1, low = [-2], high = [-1], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i], [])->([i]) {i=6} permutation={i}>} : (tensor<6xf32>, tensor<f32>) -> tensor<3xf32>
// CHECK-NEXT: %1 = sdy.reshard %0 <@mesh, [{}]> : tensor<3xf32>
// CHECK-NEXT: return %1 : tensor<3xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %z: tensor<f32>) -> tensor<3xf32> {
  %0 = stablehlo.pad %x, %z, low = [-2], high = [-1], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i], [])->([i]) {i=6} permutation={i}>} : (tensor<6xf32>, tensor<f32>) -> tensor<3xf32>
  %1 = sdy.reshard %0 <@mesh, [{}]> : tensor<3xf32>
  return %1 : tensor<3xf32>
}

// -----

// What a pad makes longer is gathered before it.
// CHECK: sdy.mesh @mesh = <["a"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %arg1: tensor<f32>) -> tensor<11xf32> {
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{}]> : tensor<6xf32>
// CHECK-NEXT: %1 = stablehlo.pad %0, %arg1, low = [0], high = [0], interior = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i], [])->([i]) {i=6} permutation={i}>} : (tensor<6xf32>, tensor<f32>) -> tensor<11xf32>
// CHECK-NEXT: %2 = sdy.reshard %1 <@mesh, [{}]> : tensor<11xf32>
// CHECK-NEXT: return %2 : tensor<11xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %z: tensor<f32>) -> tensor<11xf32> {
  %0 = stablehlo.pad %x, %z, low = [0], high = [0], interior = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i], [])->([i]) {i=6} permutation={i}>} : (tensor<6xf32>, tensor<f32>) -> tensor<11xf32>
  %1 = sdy.reshard %0 <@mesh, [{}]> : tensor<11xf32>
  return %1 : tensor<11xf32>
}
