// RUN: sdy_opt %s -pyshardy-shard-pointwise | FileCheck %s

// Results of elementwise ops without a rule are sharded like the operand that is split most, and so are what follows
// them and calls that return them; a sharding along other axes stays.
// CHECK: sdy.mesh @mesh = <["a"=2, "b"=2]>
// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}]>}) -> (tensor<8xf32>, tensor<8xf32>) {
// CHECK-NEXT: %0 = chlo.zeta %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", "b"}]>]>} : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
// CHECK-NEXT: %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", "b"}]>]>} : tensor<8xf32>
// CHECK-NEXT: %2 = stablehlo.negate %arg0 : tensor<8xf32>
// CHECK-NEXT: %3 = chlo.zeta %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}]>]>} : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
// CHECK-NEXT: %4 = call @f(%arg1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", "b"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: return %1, %3 : tensor<8xf32>, tensor<8xf32>
// CHECK-NEXT: }
// CHECK-LABEL: func.func private @f(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}]>}) {
// CHECK-NEXT: %0 = chlo.zeta %arg0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", "b"}]>]>} : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
// CHECK-NEXT: return %0 : tensor<8xf32>
// CHECK-NEXT: }
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}]>}) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = chlo.zeta %arg0, %arg1 : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
  %1 = stablehlo.negate %0 : tensor<8xf32>
  %2 = stablehlo.negate %arg0 : tensor<8xf32>
  %3 = chlo.zeta %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}]>]>} : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
  %4 = func.call @f(%arg1) : (tensor<8xf32>) -> tensor<8xf32>
  return %1, %3 : tensor<8xf32>, tensor<8xf32>
}
func.func private @f(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}]>}) -> tensor<8xf32> {
  %0 = chlo.zeta %arg0, %arg0 : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// A reshard states its sharding: it stays as it is, also behind what the pass shards.
// CHECK-LABEL: func.func @reshards(
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@mesh, [{"a"}]> : tensor<8xf32>
// CHECK-NEXT: %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<8xf32>
// CHECK-NEXT: %2 = chlo.zeta %arg0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", "b"}]>]>}
// CHECK-NEXT: %3 = sdy.reshard %2 <@mesh, [{"a"}]> : tensor<8xf32>
func.func @reshards(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}]>}) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = sdy.reshard %arg0 <@mesh, [{"a"}]> : tensor<8xf32>
  %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<8xf32>
  %2 = chlo.zeta %arg0, %arg0 : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
  %3 = sdy.reshard %2 <@mesh, [{"a"}]> : tensor<8xf32>
  return %1, %3 : tensor<8xf32>, tensor<8xf32>
}
