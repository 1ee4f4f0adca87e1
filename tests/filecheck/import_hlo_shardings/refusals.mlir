// RUN: sdy_opt %s -split-input-file -verify-diagnostics -pyshardy-import-hlo-shardings

// expected-error@+1 {{'func.func' op has mhlo.sharding = {devices=[2,2]<=[3]}, which cannot be read: reading an HLO sharding: got the grid [2, 2] with 0 subgroups over 3 devices, needed a grid of as many tiles as there are devices, each once}}
func.func @main(%a: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,2]<=[3]}"}) {
  return
}

// -----

// expected-error@+1 {{'func.func' op has mhlo.sharding = {devices=[2]<=[2]}: finding the axes of a tiling: got a tiling over 2 devices, needed 4, as many as the others have}}
func.func @main(%a: tensor<8xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}, %b: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) {
  return
}

// -----

// expected-error@+1 {{got a tiling whose parts cross those of others: axes would end at 2 and at 3 devices, needed tilings cut from one mesh}}
func.func @main(%a: tensor<6x6xf32> {mhlo.sharding = "{devices=[2,3]<=[6]}"}, %b: tensor<6x6xf32> {mhlo.sharding = "{devices=[3,2]<=[6]}"}) {
  return
}

// -----

// expected-error@+1 {{got devices in the order 0,1,3,2,4,5,6,7, needed an order that the axes of one mesh make}}
func.func @main(%a: tensor<8xf32> {mhlo.sharding = "{devices=[8]0,3,1,2,4,5,6,7}"}, %b: tensor<8xf32> {mhlo.sharding = "{devices=[8]0,1,3,2,4,5,6,7}"}) {
  return
}

// -----

// expected-error@+1 {{'func.func' op has mhlo.sharding = {devices=[4]<=[4]}: checking the sharding <mesh<["axis_0"=4]>, [{"axis_0"}]>: got 1 dimensions, needed 2, the rank of the tensor}}
func.func @main(%a: tensor<8x8xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) {
  return
}

// -----

func.func @main(%a: tensor<8xf32>) {
  // expected-error@+1 {{'stablehlo.custom_call' op has mhlo.sharding = {{replicated}, {replicated}}: counting shardings: got 2, needed 1, one per value}}
  %0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{{replicated}, {replicated}}"} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// expected-error@+1 {{grouping tensors: got shard_as or shard_like in its sharding, needed it only in the sharding of a @Sharding}}
func.func @main(%a: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2] shard_as 1}"}) {
  return
}

// -----

func.func @main(%a: tensor<8xf32>) {
  // expected-error@+1 {{'stablehlo.custom_call' op is manual along "x":(1)2, a part of an axis; manual axes are whole}}
  %0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{mesh['x'=4], [{?}], manual={'x':(1)2}}"} : (tensor<8xf32>) -> tensor<8xf32>
  return
}
