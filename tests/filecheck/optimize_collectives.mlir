// RUN: sdy_opt %s -split-input-file -sdy-optimize-collectives | FileCheck %s

// NEWER: there was no such pass
// One sub-dimension per axis, and one for the rest: nothing has to be brought to the end.
sdy.mesh @mesh = <["p"=2, "q"=2, "r"=2]>
// CHECK-LABEL: func.func @left(
// CHECK-NEXT: %0 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}, {"q"}, {"r"}, {}, {}, {}]>]>}
// CHECK-NEXT: %1 = sdy.all_to_all [{"p"}: 0->5] %0 out_sharding=<@mesh, [{}, {"q"}, {"r"}, {}, {}, {"p"}]>
// CHECK-NEXT: %2 = sdy.all_to_all [{"q"}: 1->0] %1 out_sharding=<@mesh, [{"q"}, {}, {"r"}, {}, {}, {"p"}]>
// CHECK-NEXT: %3 = sdy.all_to_all [{"r"}: 2->1] %2 out_sharding=<@mesh, [{"q"}, {"r"}, {}, {}, {}, {"p"}]>
// CHECK-NEXT: %4 = stablehlo.reshape %3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"q", "r"}, {}, {"p"}]>]>}
// CHECK-NEXT: return %4
func.func @left(%arg0: tensor<24x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q", "r"}, {}, {}]>}) -> tensor<24x16x16xf32> {
  %0 = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"q", "r", "p"}, {}, {}]> : tensor<24x16x16xf32>
  %1 = sdy.all_to_all [{"p"}: 0->2] %0 out_sharding=<@mesh, [{"q", "r"}, {}, {"p"}]> : tensor<24x16x16xf32>
  return %1 : tensor<24x16x16xf32>
}

// -----

// NEWER: there was no such pass
// All axes move away.
sdy.mesh @mesh = <["p"=2, "q"=2, "r"=2]>
// CHECK-LABEL: func.func @all(
// CHECK-NEXT: %0 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"p"}, {"q"}, {}, {}]>]>}
// CHECK-NEXT: %1 = sdy.all_to_all [{"p"}: 0->2] %0 out_sharding=<@mesh, [{}, {"q"}, {"p"}, {}]>
// CHECK-NEXT: %2 = sdy.all_to_all [{"q"}: 1->3] %1 out_sharding=<@mesh, [{}, {}, {"p"}, {"q"}]>
// CHECK-NEXT: %3 = stablehlo.reshape %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"p"}, {"q"}]>]>}
// CHECK-NEXT: return %3
func.func @all(%arg0: tensor<4x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q"}, {}, {}]>}) -> tensor<4x8x8xf32> {
  %0 = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"q", "p"}, {}, {}]> : tensor<4x8x8xf32>
  %1 = sdy.all_to_all [{"p"}: 0->1] %0 out_sharding=<@mesh, [{"q"}, {"p"}, {}]> : tensor<4x8x8xf32>
  %2 = sdy.all_to_all [{"q"}: 0->2] %1 out_sharding=<@mesh, [{}, {"p"}, {"q"}]> : tensor<4x8x8xf32>
  return %2 : tensor<4x8x8xf32>
}

// -----

// NEWER: there was no such pass
// The axes do not divide the dimension.
sdy.mesh @mesh = <["p"=2, "q"=2, "r"=2]>
// CHECK-LABEL: func.func @padded(
// CHECK-NEXT: %0 = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"q", "r", "p"}, {}, {}]>
// CHECK-NEXT: %1 = sdy.all_to_all [{"p"}: 0->2] %0 out_sharding=<@mesh, [{"q", "r"}, {}, {"p"}]>
// CHECK-NEXT: return %1
func.func @padded(%arg0: tensor<12x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q", "r"}, {}, {}]>}) -> tensor<12x16x16xf32> {
  %0 = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"q", "r", "p"}, {}, {}]> : tensor<12x16x16xf32>
  %1 = sdy.all_to_all [{"p"}: 0->2] %0 out_sharding=<@mesh, [{"q", "r"}, {}, {"p"}]> : tensor<12x16x16xf32>
  return %1 : tensor<12x16x16xf32>
}

// -----

// NEWER: there was no such pass
// What is left would not fit into the sub-dimension of another size.
sdy.mesh @mesh = <["a"=2, "b"=4]>
// CHECK-LABEL: func.func @sizes(
// CHECK-NEXT: %0 = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"b", "a"}, {}]>
// CHECK-NEXT: %1 = sdy.all_to_all [{"a"}: 0->1] %0 out_sharding=<@mesh, [{"b"}, {"a"}]>
// CHECK-NEXT: return %1
func.func @sizes(%arg0: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>}) -> tensor<32x16xf32> {
  %0 = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"b", "a"}, {}]> : tensor<32x16xf32>
  %1 = sdy.all_to_all [{"a"}: 0->1] %0 out_sharding=<@mesh, [{"b"}, {"a"}]> : tensor<32x16xf32>
  return %1 : tensor<32x16xf32>
}

// -----

// NEWER: there was no such pass
// DIFFERS: the reference moves two axes to one dimension in two parts of one all-to-all, which its verifier refuses
// Two axes to one dimension at once.
sdy.mesh @mesh = <["p"=2, "q"=2, "r"=2]>
// CHECK-LABEL: func.func @at_once(
// CHECK-NEXT: %0 = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"r", "p", "q"}, {}]>
// CHECK-NEXT: %1 = sdy.all_to_all [{"p", "q"}: 0->1] %0 out_sharding=<@mesh, [{"r"}, {"p", "q"}]>
// CHECK-NEXT: return %1
func.func @at_once(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"p", "q", "r"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"r", "p", "q"}, {}]> : tensor<8x8xf32>
  %1 = sdy.all_to_all [{"p", "q"}: 0->1] %0 out_sharding=<@mesh, [{"r"}, {"p", "q"}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// NEWER: there was no such pass
// DIFFERS: the reference does not join the parts of the axis where they meet, which its verifier refuses
// The parts of an axis meet again.
sdy.mesh @mesh = <["a"=4, "b"=2]>
// CHECK-LABEL: func.func @meet(
// CHECK-NEXT: %0 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a":(1)2}, {"b"}, {"a":(2)2}, {}]>]>}
// CHECK-NEXT: %1 = sdy.all_to_all [{"a":(1)2}: 0->3] %0 out_sharding=<@mesh, [{}, {"b"}, {"a":(2)2}, {"a":(1)2}]>
// CHECK-NEXT: %2 = sdy.all_to_all [{"a":(2)2}: 2->3] %1 out_sharding=<@mesh, [{}, {"b"}, {}, {"a"}]>
// CHECK-NEXT: %3 = sdy.all_to_all [{"b"}: 1->0] %2 out_sharding=<@mesh, [{"b"}, {}, {}, {"a"}]>
// CHECK-NEXT: %4 = stablehlo.reshape %3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}, {"a"}]>]>}
// CHECK-NEXT: return %4
func.func @meet(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)2, "b", "a":(2)2}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"b", "a":(2)2, "a":(1)2}, {}]> : tensor<8x8xf32>
  %1 = sdy.all_to_all [{"a":(1)2}: 0->1] %0 out_sharding=<@mesh, [{"b", "a":(2)2}, {"a":(1)2}]> : tensor<8x8xf32>
  %2 = sdy.all_to_all [{"a":(2)2}: 0->1] %1 out_sharding=<@mesh, [{"b"}, {"a"}]> : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
