// RUN: sdy_opt %s -split-input-file -sdy-reshard-to-collectives | FileCheck %s

// Gathered at the end of a dimension, sliced, moved.
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2, "d"=2]>
// CHECK-LABEL: func.func @gather(
// CHECK-NEXT: %0 = sdy.all_gather [{"b"}, {}] %arg0 out_sharding=<@mesh, [{"a"}, {}]>
// CHECK-NEXT: return %0
func.func @gather(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>}) -> tensor<16x16xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{"a"}, {}]> : tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}

// -----

sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2, "d"=2]>
// CHECK-LABEL: func.func @slice(
// CHECK-NEXT: %0 = sdy.all_slice [{}, {"b"}] %arg0 out_sharding=<@mesh, [{"a"}, {"b"}]>
// CHECK-NEXT: return %0
func.func @slice(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<16x16xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{"a"}, {"b"}]> : tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}

// -----

sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2, "d"=2]>
// CHECK-LABEL: func.func @move(
// CHECK-NEXT: %0 = sdy.all_to_all [{"a", "b"}: 1->0] %arg0 out_sharding=<@mesh, [{"a", "b"}, {}]>
// CHECK-NEXT: return %0
func.func @move(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a", "b"}]>}) -> tensor<16x16xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{"a", "b"}, {}]> : tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}

// -----

// Permuted first, where what moves is not at the end.
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2, "d"=2]>
// CHECK-LABEL: func.func @permute(
// CHECK-NEXT: %0 = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"b", "a"}, {}]>
// CHECK-NEXT: %1 = sdy.all_to_all [{"a"}: 0->1] %0 out_sharding=<@mesh, [{"b"}, {"a"}]>
// CHECK-NEXT: %2 = sdy.all_gather [{"b"}, {}] %1 out_sharding=<@mesh, [{}, {"a"}]>
// CHECK-NEXT: return %2
func.func @permute(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>}) -> tensor<16x16xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{}, {"a"}]> : tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}

// -----

// What is to follow in the other dimension is sliced first: all moves at once.
sdy.mesh @mesh = <["a"=2, "b"=4]>
// CHECK-LABEL: func.func @borrow(
// CHECK-NEXT: %0 = sdy.all_slice [{"b"}, {}] %arg0 out_sharding=<@mesh, [{"a", "b"}, {}]>
// CHECK-NEXT: %1 = sdy.all_to_all [{"a", "b"}: 0->1] %0 out_sharding=<@mesh, [{}, {"a", "b"}]>
// CHECK-NEXT: return %1
func.func @borrow(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{}, {"a", "b"}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// Axes are cut so that they can take the place of others.
sdy.mesh @mesh = <["x"=8, "y"=2]>
// CHECK-LABEL: func.func @cut(
// CHECK-NEXT: %0 = sdy.all_slice [{}, {"y"}] %arg0 out_sharding=<@mesh, [{"x"}, {"y"}]>
// CHECK-NEXT: %1 = sdy.collective_permute %0 out_sharding=<@mesh, [{"x":(1)2, "y", "x":(2)2}, {"x":(4)2}]>
// CHECK-NEXT: %2 = sdy.all_gather [{"x":(2)2}, {}] %1 out_sharding=<@mesh, [{"x":(1)2, "y"}, {"x":(4)2}]>
// CHECK-NEXT: return %2
func.func @cut(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<16x16xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{"x":(1)2, "y"}, {"x":(4)2}]> : tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}

// -----

sdy.mesh @mesh = <["x"=6, "y"=2]>
// CHECK-LABEL: func.func @cut_6(
// CHECK-NEXT: %0 = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"y", "x":(2)3}, {}]>
// CHECK-NEXT: %1 = sdy.all_gather [{"x":(2)3}, {}] %0 out_sharding=<@mesh, [{"y"}, {}]>
// CHECK-NEXT: return %1
func.func @cut_6(%arg0: tensor<12x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<12x12xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{"y"}, {}]> : tensor<12x12xf32>
  return %0 : tensor<12x12xf32>
}

// -----

// NEWER: plans took padding for nothing, and no more than two rounds
// A dimension whose padding changes is gathered as a whole.
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2, "d"=2]>
// CHECK-LABEL: func.func @padding(
// CHECK-NEXT: %0 = sdy.all_gather [{"a", "b"}, {}] %arg0 out_sharding=<@mesh, [{}, {"c"}]>
// CHECK-NEXT: %1 = sdy.all_slice [{"a"}, {}] %0 out_sharding=<@mesh, [{"a"}, {"c"}]>
// CHECK-NEXT: return %1
func.func @padding(%arg0: tensor<6x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {"c"}]>}) -> tensor<6x16xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{"a"}, {"c"}]> : tensor<6x16xf32>
  return %0 : tensor<6x16xf32>
}

// -----

// Another order of the devices.
sdy.mesh @mesh = <["a"=2]>
sdy.mesh @back = <["a"=2], device_ids=[1, 0]>
// CHECK-LABEL: func.func @devices(
// CHECK-NEXT: %0 = sdy.collective_permute %arg0 out_sharding=<@back, [{"a"}, {}]>
// CHECK-NEXT: return %0
func.func @devices(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<16x16xf32> {
  %0 = sdy.reshard %arg0 <@back, [{"a"}, {}]> : tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}

// -----

// Unreduced axes appear with the first step; openness and priorities do not matter.
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2, "d"=2]>
// CHECK-LABEL: func.func @unreduced(
// CHECK-NEXT: %0 = sdy.all_to_all [{"a"}: 0->1] %arg0 out_sharding=<@mesh, [{}, {"a"}], unreduced={"b"}>
// CHECK-NEXT: return %0
func.func @unreduced(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}p1, {}]>}) -> tensor<16x16xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{}, {"a"}], unreduced={"b"}> : tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}

// -----

// A value without a sharding is replicated.
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2, "d"=2]>
// CHECK-LABEL: func.func @missing(
// CHECK-NEXT: %0 = sdy.all_slice [{"a"}, {}] %arg0 out_sharding=<@mesh, [{"a"}, {}]>
// CHECK-NEXT: return %0
func.func @missing(%arg0: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{"a"}, {?}]> : tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}

// -----

// Nothing to do.
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2, "d"=2]>
// CHECK-LABEL: func.func @nothing(
// CHECK-NEXT: return %arg0
func.func @nothing(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<16x16xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{"a", ?}, {}], unreduced={"b"}> : tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}

// -----

// NEWER: reshards to single devices were refused
// From and to single devices, and between meshes with different axes.
sdy.mesh @mesh = <["a"=2]>
sdy.mesh @other = <["z"=2]>
sdy.mesh @device = <[], device_ids=[0]>
// CHECK-LABEL: func.func @kept(
// CHECK-NEXT: %0 = sdy.reshard %arg0 <@other, [{"z"}, {}]>
// CHECK-NEXT: %1 = sdy.reshard %0 <@device, []>
// CHECK-NEXT: %2 = sdy.reshard %1 <@mesh, [{}, {}]>
// CHECK-NEXT: return %2
func.func @kept(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<16x16xf32> {
  %0 = sdy.reshard %arg0 <@other, [{"z"}, {}]> : tensor<16x16xf32>
  %1 = sdy.reshard %0 <@device, []> : tensor<16x16xf32>
  %2 = sdy.reshard %1 <@mesh, [{}, {}]> : tensor<16x16xf32>
  return %2 : tensor<16x16xf32>
}

// -----

// DIFFERS: the reference goes by way of overlapping parts of an axis
// Parts of an axis that do not fit each other: all is gathered, then sliced.
sdy.mesh @mesh = <["x"=12]>
// CHECK-LABEL: func.func @parts(
// CHECK-NEXT: %0 = sdy.all_gather [{"x":(3)2}, {"x":(1)3}] %arg0 out_sharding=<@mesh, [{}, {}]>
// CHECK-NEXT: %1 = sdy.all_slice [{"x":(2)3}, {"x":(6)2}] %0 out_sharding=<@mesh, [{"x":(2)3}, {"x":(6)2}]>
// CHECK-NEXT: return %1
func.func @parts(%arg0: tensor<12x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(3)2}, {"x":(1)3}]>}) -> tensor<12x12xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{"x":(2)3}, {"x":(6)2}]> : tensor<12x12xf32>
  return %0 : tensor<12x12xf32>
}

// -----

// DIFFERS: the reference permutes from the mesh to itself, which its verifier refuses
// The same mesh under another name.
sdy.mesh @mesh = <["a"=2, "b"=2]>
sdy.mesh @same = <["a"=2, "b"=2]>
// CHECK-LABEL: func.func @name(
// CHECK-NEXT: %0 = sdy.all_slice [{}, {"b"}] %arg0 out_sharding=<@mesh, [{"a"}, {"b"}]>
// CHECK-NEXT: return %0
func.func @name(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<16x16xf32> {
  %0 = sdy.reshard %arg0 <@same, [{"a"}, {"b"}]> : tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}

// -----

// DIFFERS: the reference slices on the mesh that the first reshard asked for, which its verifier refuses
// What is replicated on the way stays on its mesh.
sdy.mesh @mesh = <["a"=2, "b"=2]>
sdy.mesh @back = <["a"=2, "b"=2], device_ids=[3, 2, 1, 0]>
// CHECK-LABEL: func.func @chain(
// CHECK-NEXT: %0 = sdy.all_gather [{"a"}, {}] %arg0 out_sharding=<@mesh, [{}, {}]>
// CHECK-NEXT: %1 = sdy.propagation_barrier %0 allowed_direction=NONE
// CHECK-NEXT: %2 = sdy.all_slice [{"b"}, {}] %0 out_sharding=<@mesh, [{"b"}, {}]>
// CHECK-NEXT: %3 = sdy.collective_permute %2 out_sharding=<@back, [{"b"}, {}]>
// CHECK-NEXT: return %3
func.func @chain(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<16x16xf32> {
  %0 = sdy.reshard %arg0 <@back, [{}, {}]> : tensor<16x16xf32>
  %1 = sdy.propagation_barrier %0 allowed_direction=NONE : tensor<16x16xf32>
  %2 = sdy.reshard %1 <@back, [{"b"}, {}]> : tensor<16x16xf32>
  return %2 : tensor<16x16xf32>
}

// -----

// DIFFERS: the reference looks at what the first reshard asked for, as there is a barrier; its verifier refuses the result
// An axis of size 1, which is left out.
sdy.mesh @mesh = <["a"=2, "b"=1]>
// CHECK-LABEL: func.func @size_one(
// CHECK-NEXT: %0 = sdy.propagation_barrier %arg0 allowed_direction=NONE
// CHECK-NEXT: %1 = sdy.all_slice [{"b", "a"}, {}] %arg0 out_sharding=<@mesh, [{"b", "a"}, {}]>
// CHECK-NEXT: return %1
func.func @size_one(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> tensor<16x16xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{"b"}, {}]> : tensor<16x16xf32>
  %1 = sdy.propagation_barrier %0 allowed_direction=NONE : tensor<16x16xf32>
  %2 = sdy.reshard %1 <@mesh, [{"b", "a"}, {}]> : tensor<16x16xf32>
  return %2 : tensor<16x16xf32>
}
