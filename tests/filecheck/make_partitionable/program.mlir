// RUN: sdy_opt %s -pyshardy-make-partitionable 2>/dev/null | FileCheck %s

sdy.mesh @mesh = <["x"=2, "y"=2]>
sdy.mesh @other = <["z"=4]>
sdy.mesh @turned = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>

// A barrier becomes what it asks for.
// CHECK-LABEL: func.func @barriers
// CHECK-NEXT: %[[COLUMNS:.*]] = sdy.reshard %arg0 <@mesh, [{}, {"y"}]>
// CHECK-NEXT: %[[WHOLE:.*]] = sdy.reshard %arg0 <@mesh, [{}, {}]>
// CHECK-NEXT: return %arg0, %[[COLUMNS]], %[[WHOLE]]
func.func @barriers(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = sdy.propagation_barrier %a allowed_direction=NONE {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x8xf32>
  %1 = sdy.propagation_barrier %a allowed_direction=NONE {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>} : tensor<8x8xf32>
  %2 = sdy.propagation_barrier %a allowed_direction=NONE : tensor<8x8xf32>
  return %0, %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// Between meshes with different axes a tensor is whole.
// CHECK-LABEL: func.func @meshes
// CHECK-NEXT: %[[WHOLE:.*]] = sdy.reshard %arg0 <@mesh, [{}, {}]>
// CHECK-NEXT: %[[SAME:.*]] = stablehlo.reshape %[[WHOLE]]
// CHECK-NEXT: %[[THERE:.*]] = sdy.reshard %[[SAME]] <@other, [{"z"}, {}]>
// CHECK-NEXT: return %[[THERE]]
func.func @meshes(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.reshard %a <@other, [{"z"}, {}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Between orders of the same devices it stays as it is.
// CHECK-LABEL: func.func @orders
// CHECK-NEXT: sdy.reshard %arg0 <@turned, [{"x"}, {}]>
// CHECK-NEXT: return
func.func @orders(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.reshard %a <@turned, [{"x"}, {}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// What is partial is so on the devices that have the parts.
// CHECK-LABEL: func.func @parts
// CHECK: %[[PARTS:.*]] = stablehlo.reduce({{.*}}<@turned, [], unreduced={"x"}>
// CHECK-NEXT: %[[SUM:.*]] = sdy.all_reduce {"x"} %[[PARTS]] out_sharding=<@turned, []>
// CHECK-NEXT: return %[[SUM]]
func.func @parts(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@turned, [{"x"}]>}) -> tensor<f32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%a init: %0) applies stablehlo.add across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [], unreduced={"x"}>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %2 = sdy.all_reduce {"x"} %1 out_sharding=<@mesh, []> : tensor<f32>
  return %2 : tensor<f32>
}

// An op without a rule gets whole tensors.
// CHECK-LABEL: func.func @without_a_rule
// CHECK-NEXT: %[[WHOLE:.*]] = sdy.reshard %arg0 <@mesh, [{}, {}]>
// CHECK-NEXT: chlo.top_k(%[[WHOLE]], k = 2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>]>}
// CHECK-NEXT: %[[VALUES:.*]] = sdy.reshard %values <@mesh, [{"x"}, {}]>
// CHECK-NEXT: %[[INDICES:.*]] = sdy.reshard %indices <@mesh, [{"x"}, {}]>
// CHECK-NEXT: return %[[VALUES]], %[[INDICES]]
func.func @without_a_rule(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x2xf32>, tensor<8x2xi32>) {
  %values, %indices = chlo.top_k(%a, k = 2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{"x"}, {}]>]>} : tensor<8x8xf32> -> (tensor<8x2xf32>, tensor<8x2xi32>)
  return %values, %indices : tensor<8x2xf32>, tensor<8x2xi32>
}

// So does one whose rule a user has given.
// CHECK-LABEL: func.func @rule_of_a_user
// CHECK-NEXT: %[[WHOLE:.*]] = sdy.reshard %arg0 <@mesh, [{}, {}]>
// CHECK-NEXT: %[[MINE:.*]] = stablehlo.custom_call @mine(%[[WHOLE]])
// CHECK-NEXT: %[[SHARD:.*]] = sdy.reshard %[[MINE]] <@mesh, [{"x"}, {}]>
// CHECK-NEXT: return %[[SHARD]]
func.func @rule_of_a_user(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.custom_call @mine(%a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}, custom>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// All tensors of an elementwise op are sharded like the one that is split most.
// CHECK-LABEL: func.func @elementwise
// CHECK-NEXT: %[[B:.*]] = sdy.reshard %arg1 <@mesh, [{"x"}, {"y"}]>
// CHECK-NEXT: %[[ZETA:.*]] = chlo.zeta %arg0, %[[B]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>}
// CHECK-NEXT: %[[WHOLE:.*]] = sdy.reshard %[[ZETA]] <@mesh, [{}, {}]>
// CHECK-NEXT: return %[[WHOLE]]
func.func @elementwise(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                       %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> tensor<8x8xf32> {
  %0 = chlo.zeta %a, %b : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// What runs on shards, and what is whole anyway, stays.
// CHECK-LABEL: func.func @fine
// CHECK-NEXT: stablehlo.negate %arg0
// CHECK-NEXT: chlo.top_k(%arg1, k = 2)
// CHECK-NEXT: return
func.func @fine(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x2xi32>) {
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x8xf32>
  %values, %indices = chlo.top_k(%b, k = 2) : tensor<8x8xf32> -> (tensor<8x2xf32>, tensor<8x2xi32>)
  return %0, %indices : tensor<8x8xf32>, tensor<8x2xi32>
}

// The rule of a convolution ties features of size 1 to nothing: they are whole where operand and result differ.
// CHECK-LABEL: func.func @single_feature
// CHECK-NEXT: %[[WHOLE:.*]] = sdy.reshard %arg1 <@mesh, [{}, {}, {}]>
// CHECK-NEXT: stablehlo.convolution(%arg0, %[[WHOLE]])
func.func @single_feature(%a: tensor<4x5x3xf32>, %k: tensor<3x1x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"x"}]>}) -> tensor<1x4x5xf32> {
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[i, 0, o]->[f, b, 0], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x5x3xf32>, tensor<3x1x1xf32>) -> tensor<1x4x5xf32>
  return %0 : tensor<1x4x5xf32>
}

// Neither does that of a reshape.
// CHECK-LABEL: func.func @single_dim
// CHECK-NEXT: %[[RESHAPE:.*]] = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}, {}]>]>}
// CHECK-NEXT: %[[SHARDED:.*]] = sdy.reshard %[[RESHAPE]] <@mesh, [{"x"}, {}, {"y"}]>
// CHECK-NEXT: return %[[SHARDED]]
func.func @single_dim(%a: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<4x6x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {"y"}]>}) {
  %0 = stablehlo.reshape %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}, {"y"}]>]>} : (tensor<4x6xf32>) -> tensor<4x6x1xf32>
  return %0 : tensor<4x6x1xf32>
}

// Every device makes its part of a buffer with anything in it; another call without operands gives whole tensors.
// CHECK-LABEL: func.func @without_operands
// CHECK-NEXT: %[[BUFFER:.*]] = stablehlo.custom_call @AllocateBuffer() {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>}
// CHECK-NEXT: %[[WHOLE:.*]] = stablehlo.custom_call @mine() {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}
// CHECK-NEXT: %[[SHARDED:.*]] = sdy.reshard %[[WHOLE]] <@mesh, [{"x"}, {"y"}]>
// CHECK-NEXT: return %[[BUFFER]], %[[SHARDED]]
func.func @without_operands() -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
  %0 = stablehlo.custom_call @AllocateBuffer() {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : () -> tensor<8x8xf32>
  %1 = stablehlo.custom_call @mine() {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : () -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// What every device has whole is not summed: an all-reduce follows each op that gives parts.
// CHECK-LABEL: func.func @sums_of_what_is_whole
// CHECK-NEXT: %[[INPUT:.*]] = sdy.reshard %arg0 <@mesh, [{"x"}, {}]>
// CHECK-NEXT: %[[PRODUCT:.*]] = stablehlo.dot %[[INPUT]], %arg1 {{.*}}<@mesh, [{"x"}, {}]>
// CHECK-NEXT: %[[SCATTERED:.*]] = sdy.reshard %[[PRODUCT]] <@mesh, [{"x"}, {"y"}]>
// CHECK-NEXT: return %[[SCATTERED]]
func.func @sums_of_what_is_whole(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                                 %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.all_reduce {"y"} %a out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %1 = stablehlo.dot %0, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = sdy.reduce_scatter [{}, {"y"}] %1 out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// The axes along which it is partial are summed.
// CHECK-LABEL: func.func @sums_of_some_parts
// CHECK: %[[PARTS:.*]] = stablehlo.reduce({{.*}}<@mesh, [{}], unreduced={"x"}>
// CHECK-NEXT: %[[SUM:.*]] = sdy.all_reduce {"x"} %[[PARTS]] out_sharding=<@mesh, [{}]>
// CHECK-NEXT: %[[SAME:.*]] = sdy.reshard %[[SUM]] <@mesh, [{}]>
// CHECK-NEXT: return %[[SAME]]
func.func @sums_of_some_parts(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%a init: %0) applies stablehlo.add across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}], unreduced={"x"}>]>} : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %2 = sdy.all_reduce {"x", "y"} %1 out_sharding=<@mesh, [{}]> : tensor<8xf32>
  return %2 : tensor<8xf32>
}
