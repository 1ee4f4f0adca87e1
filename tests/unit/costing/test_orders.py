"""The order of products in memory, and copies of those that meet others in another one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyshardy.costing.compilers import ACCELERATOR, XLA_ON_GPU, Compiler
from pyshardy.costing.flat import Flat
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse
from pyshardy.costing.kernels import Kernel
from pyshardy.costing.lowering import lower
from pyshardy.costing.orders import find_orders, in_memory, is_matrix
from pyshardy.costing.peak import peak_bytes
from pyshardy.costing.program import CostTensor

from .build import FIVE_ROUNDS, described

GROUPS, HEADS, LENGTH = 4, 2, 256
SCORES = GROUPS * HEADS * LENGTH * LENGTH


def attention(heads: int, is_read_twice: bool = True) -> str:
    """The gradient of a softmax of grouped heads, from scores [g, s, t, h] and the gradient of weights [g, h, t, s]."""
    key, query = f"tensor<{GROUPS}x{LENGTH}x64xbf16>", f"tensor<{GROUPS}x{LENGTH}x{heads}x64xbf16>"
    other = f"tensor<{GROUPS}x{heads}x{LENGTH}x64xbf16>"
    written = f"tensor<{GROUPS}x{LENGTH}x{LENGTH}x{heads}xbf16>"
    short = f"tensor<{GROUPS}x{heads}x{LENGTH}x{LENGTH}xbf16>"
    wide, rows = short.replace("bf16", "f32"), f"tensor<{GROUPS}x{heads}x{LENGTH}xf32>"
    second = "%m" if is_read_twice else "%e"
    return f"""func.func @main(%k: {key}, %q: {query}, %o: {other}, %v: {key}) -> {key} {{
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %s = stablehlo.dot_general %k, %q, batching_dims = [0] x [0], contracting_dims = [2] x [3]
        : ({key}, {query}) -> {written}
      %t = stablehlo.transpose %s, dims = [0, 3, 2, 1] : ({written}) -> {short}
      %f = stablehlo.convert %t : ({short}) -> {wide}
      %e = stablehlo.exponential %f : {wide}
      %p = stablehlo.dot_general %o, %v, batching_dims = [0] x [0], contracting_dims = [3] x [2]
        : ({other}, {key}) -> {short}
      %g = stablehlo.convert %p : ({short}) -> {wide}
      %m = stablehlo.multiply %g, %e : {wide}
      %r = stablehlo.reduce({second} init: %zero) applies stablehlo.add across dimensions = [3]
        : ({wide}, tensor<f32>) -> {rows}
      %b = stablehlo.broadcast_in_dim %r, dims = [0, 1, 2] : ({rows}) -> {wide}
      %h = stablehlo.{"subtract %g" if is_read_twice else "add %m"}, %b : {wide}
      %d = stablehlo.multiply %h, %e : {wide}
      %c = stablehlo.convert %d : ({wide}) -> {short}
      %u = stablehlo.transpose %c, dims = [0, 3, 2, 1] : ({short}) -> {written}
      %x = stablehlo.dot_general %u, %q, batching_dims = [0] x [0], contracting_dims = [2, 3] x [1, 2]
        : ({written}, {query}) -> {key}
      return %x : {key}
    }}"""


def lowered(text: str, compiler: Compiler = XLA_ON_GPU) -> Flat:
    return lower(flatten(described(text), compiler), compiler)


def kernels(text: str, compiler: Compiler = XLA_ON_GPU) -> tuple[Kernel, ...]:
    return fuse(lowered(text, compiler), compiler).kernels


def copies(text: str) -> list[tuple[str, int]]:
    """The types and the sizes of copies."""
    kinds = [kernel.root.kind for kernel in kernels(text) if kernel.root.kind.name == "xla.copy"]
    return [(kind.results[0].dtype, kind.results[0].elements) for kind in kinds]


def test_gradients_of_grouped_heads_are_copied_in_f32() -> None:
    assert copies(attention(HEADS)) == [("f32", SCORES)]
    without = replace(XLA_ON_GPU, turns_products=False)
    more = peak_bytes(described(attention(HEADS)), XLA_ON_GPU) - peak_bytes(described(attention(HEADS)), without)
    assert more >= 2 * SCORES  # f32 in place of bf16
    assert "xla.copy" not in {kernel.root.kind.name for kernel in kernels(attention(HEADS), ACCELERATOR)}


@pytest.mark.parametrize("text", [attention(1), attention(HEADS, False)], ids=["one head", "one reader"])
def test_no_copy_where_a_product_can_be_written_so_or_one_kernel_reads_it(text: str) -> None:
    assert not copies(text)


def test_the_copy_is_in_loops_too() -> None:
    head, *inside, last, _ = attention(HEADS).splitlines()
    key = f"tensor<{GROUPS}x{LENGTH}x64xbf16>"
    text = "\n".join([
        head,
        "%begin = stablehlo.constant dense<0> : tensor<i32>",
        f"%l:2 = stablehlo.while(%i = %begin, %a = %k) : tensor<i32>, {key}",
        FIVE_ROUNDS.replace("dense<5>", "dense<3>"),
        *[line.replace("%k,", "%a,") for line in inside],
        f"stablehlo.return %j, {last.split()[1]} : tensor<i32>, {key}",
        f"}}\nreturn %l#1 : {key}\n}}",
    ])  # fmt: skip
    (loop,) = (kernel for kernel in kernels(text) if kernel.inner)
    assert [kernel.root.kind.name for kernel in loop.inner[1].kernels].count("xla.copy") == 1


def test_orders_follow_products_through_transposes() -> None:
    flat = lowered(attention(HEADS))
    orders = find_orders(flat).of
    makers = {one.op.kind.name.partition(".")[2]: one.op for one in flat.body.ops}
    made = makers["exponential"].results[0]
    assert orders[made] == (0, 3, 2, 1)  # groups, keys, queries, heads
    assert in_memory(flat.tensors[made], orders[made]) == (GROUPS, LENGTH, LENGTH, HEADS)
    assert orders[makers["copy"].results[0]] == orders[made]
    read = makers["dot_general"]  # the last one
    assert is_matrix(read, 0, (0, 1, 2, 3)) and not is_matrix(read, 0, (0, 2, 1, 3))
    assert in_memory(CostTensor((3, 1, 5), "f32", 60), None) == (3, 5)


def test_rows_that_are_not_together_in_memory_are_no_softmax_of_one_kernel() -> None:
    """Keys are not the last dimension of scores; the sum over them is a kernel, and what reads it another one."""
    names = [[op.kind.name.partition(".")[2] for op in kernel.ops] for kernel in kernels(attention(HEADS))]
    assert [("reduce" in one, "subtract" in one) for one in names[-3:]] == [
        (True, False),
        (False, True),
        (False, False),
    ]


CARRIED = f"""func.func @main(%x: tensor<512xf32>) -> tensor<512xf32> {{
  %number = stablehlo.constant dense<2.0> : tensor<f32>
  %fill = stablehlo.broadcast_in_dim %number, dims = [] : (tensor<f32>) -> tensor<512xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %l:3 = stablehlo.while(%i = %zero, %a = %x, %f = %fill) : tensor<i32>, tensor<512xf32>, tensor<512xf32>
{FIVE_ROUNDS}    %b = stablehlo.power %a, %f : tensor<512xf32>
    stablehlo.return %j, %b, %f : tensor<i32>, tensor<512xf32>, tensor<512xf32>
  }}
  return %l#1 : tensor<512xf32>
}}"""


def carried(text: str, compiler: Compiler = XLA_ON_GPU) -> list[str]:
    """The last ops of kernels that make what a loop reads from outside, other than the number of the round."""
    found = kernels(text, compiler)
    (loop,) = (kernel for kernel in found if kernel.inner)
    makers = [kernel for kernel in found if set(kernel.writes) & set(loop.reads)]
    return [kernel.root.kind.name for kernel in makers if kernel.root.kind.results[0].elements > 1]


def test_one_number_that_a_loop_reads_from_outside_is_an_array_on_gpus() -> None:
    assert carried(CARRIED) == ["stablehlo.broadcast_in_dim"]
    assert carried(CARRIED, ACCELERATOR) == []


def test_a_constant_moves_into_the_loop() -> None:
    fill = "stablehlo.broadcast_in_dim %number, dims = [] : (tensor<f32>) -> tensor<512xf32>"
    assert fill in CARRIED and not carried(CARRIED.replace(fill, "stablehlo.constant dense<2.0> : tensor<512xf32>"))
