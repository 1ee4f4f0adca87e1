"""What XLA adds to the memory of a program: tables of pointers, copies, gradients of pooling."""

from __future__ import annotations

from dataclasses import replace

from pyshardy.costing.compilers import XLA_ON_CPU, Compiler, Order
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse
from pyshardy.costing.lowering import lower
from pyshardy.costing.memory import Planner
from pyshardy.costing.overwriting import with_copies
from pyshardy.costing.peak import peak_bytes

from .build import LOOP, described

PACKED = Compiler(Order.PROGRAM, alignment=64, packs=True)

SORT = """
func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %0:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<64xf32>, tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>)
  %2 = stablehlo.add %0#0, %0#1 : tensor<64xf32>
  return %2 : tensor<64xf32>
}
"""

DONATED = """
func.func @main(%x: tensor<64x64xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<64x64xf32>)
    -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = stablehlo.add %x, %y : tensor<64x64xf32>
  %1 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0, %1 : tensor<64x64xf32>, tensor<64x64xf32>
}
"""

POOLING = """
func.func @main(%x: tensor<8x8xf32>, %g: tensor<4x4xf32>) -> tensor<8x8xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %g, %z)
    <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<8x8xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""


def test_results_of_several_arrays_have_a_table() -> None:
    # one array is sorted where the result will be, the other beside it; then the table of two pointers
    assert peak_bytes(described(SORT), PACKED) == 3 * 256 + 256 + 2 * 8
    assert peak_bytes(described(SORT), replace(PACKED, packs=False)) == 3 * 256 + 256


def test_the_state_of_a_loop_has_a_table() -> None:
    program = described(LOOP)
    flat = flatten(program)
    plan = Planner(flat, PACKED).main(fuse(flat), program.inputs)
    assert plan.packed is not None and plan.packed > max(plan.held)


def test_a_donated_argument_that_is_read_late_is_copied() -> None:
    program = described(DONATED)
    copies = replace(PACKED, copies_overwritten=True)
    matrix = 64 * 64 * 4
    assert peak_bytes(program, PACKED) - peak_bytes(program, copies) == 0  # the sum waits beside, or the copy does
    flat = flatten(program)
    block = fuse(flat)
    tensors = list(flat.tensors)

    def new(tensor: object) -> int:
        tensors.append(tensor)  # type: ignore[arg-type]
        return len(tensors) - 1

    found, moved = with_copies(block.kernels, [(block.arguments[0], block.results[0])], tensors, new)
    assert not moved and [kernel.root.kind.name for kernel in found[:1]] == ["stablehlo.copy"]
    assert all(block.arguments[0] not in kernel.reads for kernel in found[1:])
    assert tensors[found[0].writes[0]].bytes == matrix


def test_an_argument_whose_readers_come_first_is_not_copied() -> None:
    text = DONATED.replace("%0 = stablehlo.add %x, %y", "%2 = stablehlo.add %1, %x").replace(
        "return %0, %1", "return %2, %1"
    )
    lines = text.splitlines()
    lines[3], lines[4:6] = lines[4], [lines[5], lines[3]]
    flat = flatten(described("\n".join(lines)))
    block = fuse(flat)
    found, moved = with_copies(
        block.kernels, [(block.arguments[0], block.results[0])], flat.tensors, lambda tensor: len(flat.tensors)
    )
    assert not moved and len(found) == len(block.kernels)


def test_state_that_changes_places_is_copied() -> None:
    text = LOOP.replace("%0:2", "%0:3").replace("%a = %x)", "%a = %x, %d = %w)")
    text = text.replace("tensor<i32>, tensor<64xf32>\n  cond", "tensor<i32>, tensor<64xf32>, tensor<64xf32>\n  cond")
    text = text.replace(
        "stablehlo.return %j, %b : tensor<i32>, tensor<64xf32>",
        "stablehlo.return %j, %d, %a : tensor<i32>, tensor<64xf32>, tensor<64xf32>",
    )
    text = text.replace("@main(%x: tensor<64xf32>)", "@main(%x: tensor<64xf32>, %w: tensor<64xf32>)")
    program = described(text)
    copying = peak_bytes(program, replace(PACKED, copies_overwritten=True))
    assert copying > peak_bytes(program, PACKED)


def test_the_gradient_of_pooling_is_a_search_and_a_scatter() -> None:
    program = described(POOLING)
    flat = lower(flatten(program), XLA_ON_CPU)
    names = [one.op.kind.name.partition(".")[2] for one in flat.body.ops]
    assert names.count("iota") == 2 and {"reduce_window", "concatenate", "scatter"} <= {*names}
    assert peak_bytes(program, XLA_ON_CPU) > peak_bytes(program, replace(XLA_ON_CPU, expands_pooling=False)) + 2 * 256
