// RUN: sdy_opt %s -split-input-file -verify-diagnostics -pyshardy-resolve-sub-axes | FileCheck %s

// Halves of an axis of six devices that cannot be cut from it at once: the first one stays.
sdy.mesh @m = <["a"=6, "b"=2]>
// CHECK-LABEL: func.func @takes(
// CHECK-NEXT: %0 = sdy.reshard %arg1 <@m, [{"b"}, {}]> : tensor<4x1xi32>
// CHECK-NEXT: %1 = "stablehlo.gather"(%arg0, %0)
// CHECK-SAME: sdy.sharding_per_value<[<@m, [{"b"}, {}]>]>
// CHECK-NEXT: %2 = sdy.reshard %1 <@m, [{"b", "a":(3)2}, {}]> : tensor<4x8xf32>
// CHECK-NEXT: return %2 : tensor<4x8xf32>
func.func @takes(%x: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a":(1)2}, {}]>},
                 %i: tensor<4x1xi32> {sdy.sharding = #sdy.sharding<@m, [{"b", "a":(3)2}, {}]>}) -> tensor<4x8xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}>
    {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"b", "a":(3)2}, {}]>]>} : (tensor<4x8xf32>, tensor<4x1xi32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// A sharding that has both loses the later one, in regions and private functions too. What can be cut at once stays.
sdy.mesh @m = <["a"=6]>
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %0 = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a":(1)2}, {}]>]>} : tensor<4x8xf32>
// CHECK-NEXT: %1 = call @f(%0) {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a":(3)2}, {}]>]>}
// CHECK-NEXT: %2 = "stablehlo.case"
// CHECK-NEXT: %4 = stablehlo.abs %1 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a":(3)2}, {}]>]>} : tensor<4x8xf32>
// CHECK: {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {"a":(1)2, ?}]>]>} : (tensor<i32>) -> tensor<4x8xf32>
// CHECK-NEXT: %3 = stablehlo.sine %2 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a":(2)3}, {"a":(1)2}]>]>} : tensor<4x8xf32>
// CHECK: func.func private @f(%arg0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a":(3)2}, {}]>})
func.func @main(%x: tensor<4x8xf32>, %i: tensor<i32>) -> tensor<4x8xf32> {
  %0 = stablehlo.negate %x {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a":(1)2}, {"a":(3)2}]>]>} : tensor<4x8xf32>
  %1 = func.call @f(%0) {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a":(3)2}, {"a":(1)2}]>]>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "stablehlo.case"(%i) ({
    %3 = stablehlo.abs %1 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a":(3)2}, {"a":(1)2}]>]>} : tensor<4x8xf32>
    stablehlo.return %3 : tensor<4x8xf32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {"a":(1)2, "a":(3)2, ?}]>]>} : (tensor<i32>) -> tensor<4x8xf32>
  %4 = stablehlo.sine %2 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a":(2)3}, {"a":(1)2}]>]>} : tensor<4x8xf32>
  return %4 : tensor<4x8xf32>
}
func.func private @f(%x: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a":(3)2}, {"a":(1)2}]>}) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}

// -----

// Without such sub-axes nothing changes, whatever overlaps.
sdy.mesh @m = <["a"=12]>
// CHECK-LABEL: func.func @overlaps(
// CHECK-NEXT: %0 = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a":(2)2}]>]>} : tensor<12xf32>
// CHECK-NEXT: return %0
func.func @overlaps(%x: tensor<12xf32> {sdy.sharding = #sdy.sharding<@m, [{"a":(1)4}]>},
                    %y: tensor<12xf32> {sdy.sharding = #sdy.sharding<@m, [{"a":(1)2, "a":(4)3}]>}) -> tensor<12xf32> {
  %0 = stablehlo.add %x, %y {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a":(2)2}]>]>} : tensor<12xf32>
  return %0 : tensor<12xf32>
}

// -----

sdy.mesh @m = <["a"=6]>
// expected-error@+1 {{has argument 1 sharded as <@m, [{"a":(1)2}, {"a":(3)2}]>, but its sub-axes cannot be cut from one axis at once}}
func.func @input(%x: tensor<4x8xf32>, %y: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a":(1)2}, {"a":(3)2}]>}) {
  return
}

// -----

sdy.mesh @m = <["a"=6]>
// expected-error@+1 {{has result 0 sharded as <@m, [{"a":(3)2}], unreduced={"a":(1)2}>, but its sub-axes cannot be cut from one axis at once}}
func.func @output(%x: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a":(3)2}], unreduced={"a":(1)2}>}) {
  return %x : tensor<8xf32>
}

// -----

sdy.mesh @m = <["a"=6]>
func.func @sum(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a":(3)2}]>}) -> tensor<8xf32> {
  // expected-error@+1 {{reduces along "a":(1)2 what is sharded along "a":(3)2, which excludes it}}
  %0 = sdy.all_reduce {"a":(1)2} %x out_sharding=<@m, [{"a":(3)2}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A reduce-scatter sums along axes of its own result, which exclude nothing.
sdy.mesh @m = <["a"=6]>
// CHECK-LABEL: func.func @scattered(
// CHECK-NEXT: %0 = stablehlo.negate %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a":(3)2}]>]>}
// CHECK-NEXT: %1 = sdy.reduce_scatter [{"a":(1)2}] %arg0 out_sharding=<@m, [{"a":(1)2}]>
// CHECK-NEXT: return %1, %0
func.func @scattered(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{}], unreduced={"a":(1)2}>},
                     %y: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a":(3)2}]>}) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.negate %y {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a":(3)2}]>]>} : tensor<8xf32>
  %1 = sdy.reduce_scatter [{"a":(1)2}] %x out_sharding=<@m, [{"a":(1)2}]> : tensor<8xf32>
  return %1, %0 : tensor<8xf32>, tensor<8xf32>
}
