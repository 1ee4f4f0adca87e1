"""Kernels that compilers for GPUs merge into one of several results."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyshardy.costing.compilers import ACCELERATOR
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse
from pyshardy.costing.kernels import Kernel

from .build import described

GPU = replace(ACCELERATOR, merges_kernels=True)


def merged(text: str) -> tuple[tuple[Kernel, ...], list[int]]:
    """The kernels of a program, and the bytes of all its values."""
    flat = flatten(described(text))
    return fuse(flat, GPU).kernels, [tensor.bytes for tensor in flat.tensors]


def moved(text: str) -> int:
    """The bytes that all kernels of a program read and write."""
    kernels, sizes = merged(text)
    return sum(sizes[value] for kernel in kernels for value in (*kernel.reads, *kernel.writes))


def softmax(rows: int, columns: int) -> str:
    whole, row = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>"
    return f"""func.func @main(%x: {whole}) -> {whole} {{
      %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %max = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
        : ({whole}, tensor<f32>) -> {row}
      %maxs = stablehlo.broadcast_in_dim %max, dims = [0] : ({row}) -> {whole}
      %less = stablehlo.subtract %x, %maxs : {whole}
      %e = stablehlo.exponential %less : {whole}
      %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
        : ({whole}, tensor<f32>) -> {row}
      %sums = stablehlo.broadcast_in_dim %sum, dims = [0] : ({row}) -> {whole}
      %p = stablehlo.divide %e, %sums : {whole}
      return %p : {whole}
    }}"""


def test_a_softmax_reads_and_writes_memory_once() -> None:
    kernels, _ = merged(softmax(256, 1024))
    assert len(kernels) == 1
    assert moved(softmax(256, 1024)) == 2 * 256 * 1024 * 4


def test_rows_that_are_read_twice_are_not_written_over() -> None:
    """Only an optimizer's update may write where each of its operands was."""
    ((kernel,), _) = merged(softmax(256, 1024))
    assert kernel.in_place == frozenset()
    ((update,), _) = merged(OPTIMIZER)
    assert update.in_place == frozenset(update.reads)


def test_rows_that_are_too_long_are_read_again() -> None:
    """XLA for H100 makes one kernel of a softmax of rows of up to 16,384 elements."""
    assert len(merged(softmax(8, 16384))[0]) == 1
    assert len(merged(softmax(8, 32768))[0]) > 1


OPTIMIZER = """func.func @main(%p: tensor<64x64xf32>, %g: tensor<64x64xf32>, %m: tensor<64x64xf32>)
    -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %new = stablehlo.add %m, %g : tensor<64x64xf32>
  %root = stablehlo.sqrt %new : tensor<64x64xf32>
  %after = stablehlo.subtract %p, %root : tensor<64x64xf32>
  return %after, %new : tensor<64x64xf32>, tensor<64x64xf32>
}"""


def test_an_update_writes_its_state_in_the_same_kernel() -> None:
    ((kernel,), _) = merged(OPTIMIZER)
    assert (len(kernel.reads), len(kernel.writes)) == (3, 2)


def test_what_waits_for_another_kernel_is_not_merged_around_it() -> None:
    """The negation reads a sum of columns of what the first kernel writes, and that sum is complete only at its end."""
    kernels, _ = merged("""func.func @main(%x: tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %a = stablehlo.exponential %x : tensor<64x32xf32>
      %sum = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<64x32xf32>, tensor<f32>) -> tensor<32xf32>
      %sums = stablehlo.broadcast_in_dim %sum, dims = [1] : (tensor<32xf32>) -> tensor<64x32xf32>
      %b = stablehlo.add %a, %sums : tensor<64x32xf32>
      return %a, %b : tensor<64x32xf32>, tensor<64x32xf32>
    }""")
    made: set[int] = {0}
    for kernel in kernels:
        assert made.issuperset(kernel.reads), "a kernel reads what is not computed yet"
        made.update(kernel.writes)
    assert len(kernels) == 2


@pytest.mark.parametrize("scale", [1, 2])
def test_probabilities_are_computed_again_where_that_moves_less(scale: int) -> None:
    """Attention's gradient reads the scores, half as large as the probabilities, and computes these once more."""
    rows, columns = 64 * scale, 512
    half, whole, row = f"tensor<{rows}x{columns}xbf16>", f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>"
    square = f"tensor<{columns}x{columns}xf32>"
    text = f"""func.func @main(%x: {half}, %w: {square}) -> {half} {{
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %f = stablehlo.convert %x : ({half}) -> {whole}
      %e = stablehlo.exponential %f : {whole}
      %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
        : ({whole}, tensor<f32>) -> {row}
      %sums = stablehlo.broadcast_in_dim %sum, dims = [0] : ({row}) -> {whole}
      %p = stablehlo.divide %e, %sums : {whole}
      %h = stablehlo.convert %p : ({whole}) -> {half}
      %wide = stablehlo.convert %h : ({half}) -> {whole}
      %d = stablehlo.dot_general %wide, %w, contracting_dims = [1] x [0] : ({whole}, {square}) -> {whole}
      %g = stablehlo.multiply %d, %p : {whole}
      %out = stablehlo.convert %g : ({whole}) -> {half}
      return %out : {half}
    }}"""
    kernels, sizes = merged(text)
    last = kernels[-1]
    assert 0 in last.reads and "exponential" in str([op.kind.name for op in last.ops])
    assert sum(sizes[value] == rows * columns * 4 for kernel in kernels for value in kernel.writes) <= 2


def beside(read: str) -> list[list[str]]:
    """Kernels of two ops on one array: a product needs the first, and the second needs a product."""
    kind = "tensor<64x64xf32>"
    kernels, _ = merged(f"""func.func @main(%x: {kind}, %y: {kind}) -> ({kind}, {kind}, {kind}) {{
      %a = stablehlo.tanh %x : {kind}
      %p = stablehlo.dot_general %a, %y, contracting_dims = [1] x [0] : ({kind}, {kind}) -> {kind}
      %q = stablehlo.dot_general %y, %y, contracting_dims = [1] x [0] : ({kind}, {kind}) -> {kind}
      %b = stablehlo.multiply %x, {read} : {kind}
      return %p, %q, %b : {kind}, {kind}, {kind}
    }}""")
    return [[op.kind.name.partition(".")[2] for op in kernel.ops] for kernel in kernels]


def test_what_needs_the_first_of_two_kernels_runs_after_both() -> None:
    assert beside("%q") == [["dot_general"], ["tanh", "multiply"], ["dot_general"]]


def test_a_kernel_is_not_merged_with_what_it_needs_through_others() -> None:
    assert beside("%p") == [["tanh"], ["dot_general"], ["dot_general"], ["multiply"]]
