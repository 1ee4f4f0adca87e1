"""What XLA makes of loops, products of vectors, scatters and broadcasts before it fuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyshardy.costing.compilers import ACCELERATOR, XLA_ON_CPU, Compiler, Order
from pyshardy.costing.flat import FlatBlock
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse
from pyshardy.costing.kernels import Kernels, all_kernels
from pyshardy.costing.lowering import lower
from pyshardy.costing.order import ordered
from pyshardy.costing.packing import Lifetime, packed_bytes

from .build import described


def names(text: str, compiler: Compiler = XLA_ON_CPU) -> list[object]:
    """The names of the ops, those inside of others in lists of their own."""
    return _names(lower(flatten(described(text), compiler), compiler).body)


def _names(block: FlatBlock) -> list[object]:
    found: list[object] = []
    for flat in block.ops:
        found.append(flat.op.kind.name.partition(".")[2])
        if flat.inner:
            found.append([_names(region) for region in flat.inner])
    return found


LOOP = """
func.func @main(%x: tensor<8xf32>, %y: tensor<8x8xf32>) -> tensor<8xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<8xf32>
  cond {{
    %n = stablehlo.constant dense<{rounds}> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    {body}
    stablehlo.return %j, %b : tensor<i32>, tensor<8xf32>
  }}
  return %0#1 : tensor<8xf32>
}}
"""
SUM = """
    %2 = stablehlo.slice %y [0:1, 0:8] : (tensor<8x8xf32>) -> tensor<1x8xf32>
    %3 = stablehlo.reshape %2 : (tensor<1x8xf32>) -> tensor<8xf32>
    %4 = stablehlo.tanh %3 : tensor<8xf32>
    %b = stablehlo.multiply %a, %4 : tensor<8xf32>"""
SLICE = SUM.replace("stablehlo.tanh %3 : tensor<8xf32>", "stablehlo.slice %3 [0:8] : (tensor<8xf32>) -> tensor<8xf32>")


def test_what_no_round_changes_goes_before_the_loop() -> None:
    found = names(LOOP.format(rounds=5, body=SUM))
    assert "tanh" in found[: found.index("while")] and "slice" in found[: found.index("while")]
    assert found[found.index("while") + 1] == [["constant", "compare"], ["constant", "add", "multiply"]]
    kept = names(LOOP.format(rounds=5, body=SUM), replace(XLA_ON_CPU, hoists=False))
    assert "tanh" not in kept[: kept.index("while")]


def test_a_slice_alone_stays_in_the_loop() -> None:
    found = names(LOOP.format(rounds=5, body=SLICE))
    assert "slice" not in found[: found.index("while")]


def test_what_two_loops_compute_is_computed_once() -> None:
    first, *rest = LOOP.format(rounds=5, body=SUM).partition("  return %0#1")
    loop = first[first.index("  %0:2") :].replace("%0:2", "%9:2").replace("%a = %x", "%a = %0#1")
    found = names(first + loop + "".join(rest).replace("%0#1", "%9#1"))
    assert found.count("while") == 2 and found.count("tanh") == 1


@pytest.mark.parametrize("compiler", [ACCELERATOR, XLA_ON_CPU], ids=["accelerator", "cpu"])
def test_a_loop_of_one_round_is_no_loop(compiler: Compiler) -> None:
    assert "while" not in names(LOOP.format(rounds=1, body=SUM), compiler)
    assert "while" in names(LOOP.format(rounds=2, body=SUM), compiler)


def product(left: str, right: str, result: str, dims: str) -> str:
    return f"""func.func @main(%x: tensor<{left}>, %y: tensor<{right}>) -> tensor<{result}> {{
      %0 = stablehlo.dot_general %x, %y, {dims} : (tensor<{left}>, tensor<{right}>) -> tensor<{result}>
      return %0 : tensor<{result}>
    }}"""


@pytest.mark.parametrize(
    "left, right, result, dims, expected",
    [
        ("8xf32", "8xf32", "f32", "contracting_dims = [0] x [0]", ["multiply", "reduce"]),
        ("4x8xf32", "4x8xf32", "4xf32", "batching_dims = [0] x [0], contracting_dims = [1] x [1]", ["multiply", "reduce"]),
        ("4x8xf32", "8x4xf32", "4x4xf32", "contracting_dims = [1] x [0]", ["dot_general"]),
        ("4x8xf32", "8xf32", "4xf32", "contracting_dims = [1] x [0]", ["dot_general"]),
    ],
)  # fmt: skip
def test_a_product_of_vectors_is_a_sum(left: str, right: str, result: str, dims: str, expected: list[object]) -> None:
    assert names(product(left, right, result, dims)) == expected


def test_what_a_product_reads_in_another_shape_is_computed_for_it_and_for_others() -> None:
    text = """func.func @main(%x: tensor<1x8x8xf32>, %y: tensor<1x8x8xf32>) -> (tensor<1x8xf32>, tensor<1x8x8xf32>) {
      %0 = stablehlo.add %x, %y : tensor<1x8x8xf32>
      %1 = stablehlo.slice %x [0:1, 0:1, 0:8] : (tensor<1x8x8xf32>) -> tensor<1x1x8xf32>
      %2 = stablehlo.reshape %1 : (tensor<1x1x8xf32>) -> tensor<1x8xf32>
      %3 = stablehlo.dot_general %0, %2, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<1x8x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
      %4 = stablehlo.subtract %0, %y : tensor<1x8x8xf32>
      return %3, %4 : tensor<1x8xf32>, tensor<1x8x8xf32>
    }"""
    for compiler, times in ((XLA_ON_CPU, 2), (replace(XLA_ON_CPU, keeps_reshapes=False), 1)):
        block = fuse(lower(flatten(described(text), compiler), compiler), compiler)
        ops = [op.kind.name for kernel in all_kernels(block) for op in kernel.ops]
        assert ops.count("stablehlo.add") == times
        assert all(kernel.ops[-1].kind.name != "xla.bitcast" or len(kernel.ops) > 1 for kernel in block.kernels)


SCATTER = """func.func @main(%x: tensor<8x4xf32>, %i: tensor<{indices}xi32>, %u: tensor<{updates}xf32>) -> tensor<8x4xf32> {{
  %0 = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [{window}], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
    index_vector_dim = {vector}>}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }}) : (tensor<8x4xf32>, tensor<{indices}xi32>, tensor<{updates}xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}}"""


def test_scatters_copy_updates_that_have_several_dimensions_or_come_late() -> None:
    assert "transpose" not in names(SCATTER.format(indices="6x1", updates="6x4", window=1, vector=1))
    assert "transpose" in names(SCATTER.format(indices="2x3x1", updates="2x3x4", window=2, vector=2))
    assert "transpose" in names(SCATTER.format(indices="6x1", updates="4x6", window=0, vector=1))


def test_element_wise_ops_run_before_what_they_read_is_spread() -> None:
    text = """func.func @main(%x: tensor<8xf32>, %y: tensor<8x16xf32>) -> tensor<8x16xf32> {
      %two = stablehlo.constant dense<2.0> : tensor<8x16xf32>
      %0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<8xf32>) -> tensor<8x16xf32>
      %1 = stablehlo.multiply %0, %two : tensor<8x16xf32>
      %2 = stablehlo.tanh %1 : tensor<8x16xf32>
      %3 = stablehlo.add %2, %y : tensor<8x16xf32>
      return %3 : tensor<8x16xf32>
    }"""
    flat = lower(flatten(described(text), XLA_ON_CPU), XLA_ON_CPU)
    found = [(one.op.kind.name.partition(".")[2], one.op.kind.results[0].shape) for one in flat.body.ops]
    assert found == [
        ("multiply", (8,)), ("tanh", (8,)), ("broadcast_in_dim", (8, 16)), ("add", (8, 16)),
    ]  # fmt: skip


def test_buffers_are_packed_in_the_better_of_two_orders() -> None:
    buffers = [Lifetime(2, 6, 10), Lifetime(3, 0, 0), Lifetime(1, 0, 5), Lifetime(1, 4, 7), Lifetime(2, 5, 8)]
    assert packed_bytes(buffers) == 5  # the longest-lived first; the largest first take 6


BARRIER = """func.func @main(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>, %z: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.sine %x : tensor<8x8xf32>
  %1 = stablehlo.dot_general %y, %0, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2:3 = stablehlo.optimization_barrier %x, %1, %z : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  %3 = stablehlo.sine %2#0 : tensor<8x8xf32>
  %4 = stablehlo.dot_general %y, %3, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2#1, %4 : tensor<8x8xf32>, tensor<8x8xf32>
}"""


def test_what_follows_a_barrier_is_computed_again_after_all_that_the_barrier_reads() -> None:
    assert names(BARRIER).count("sine") == 2
    block = fuse(lower(flatten(described(BARRIER), XLA_ON_CPU), XLA_ON_CPU), XLA_ON_CPU)
    kernels = [kernel.root.kind.name.partition(".")[2] for kernel in block.kernels]
    assert kernels == ["sine", "dot_general", "sine", "dot_general"]
    first, product, again, _ = block.kernels
    assert again.reads == first.reads  # the barrier takes no memory
    assert again.needs == (
        *first.reads,
        *first.reads,
        *product.writes,
    )  # without %z: nothing reads it after the barrier
    assert _in_order(block) == [0, 1, 2, 3]
    assert _in_order(block._replace(kernels=tuple([one._replace(waits=()) for one in block.kernels]))) == [0, 2, 1, 3]


def _in_order(block: Kernels) -> list[int]:
    """The places of kernels in the order in which XLA for CPUs runs them."""
    writes = [kernel.writes for kernel in block.kernels]
    return [writes.index(one.writes) for one in ordered(block.kernels, Order.BREADTH, len, set(), block.arguments)]


ALL_REDUCE = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8xTYPE>) -> tensor<8xTYPE> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"}
      (%a: tensor<8xTYPE>) {
    %1 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%b: tensor<TYPE>, %c: tensor<TYPE>):
      %2 = stablehlo.add %b, %c : tensor<TYPE>
      stablehlo.return %2 : tensor<TYPE>
    }) : (tensor<8xTYPE>) -> tensor<8xTYPE>
    sdy.return %1 : tensor<8xTYPE>
  } : (tensor<8xTYPE>) -> tensor<8xTYPE>
  return %0 : tensor<8xTYPE>
}"""


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32", "f64", "i16"])
def test_short_floats_of_several_devices_are_added_in_f32(dtype: str) -> None:
    flat = lower(flatten(described(ALL_REDUCE.replace("TYPE", dtype)), XLA_ON_CPU), XLA_ON_CPU)
    found = [(one.op.kind.name.partition(".")[2], one.op.kind.results[0].dtype) for one in flat.body.ops]
    short = [("convert", "f32"), ("all_reduce", "f32"), ("convert", dtype)]
    assert found == (short if dtype in ("bf16", "f16") else [("all_reduce", dtype)])
    assert all(tensor.bytes == 32 for one in flat.body.ops for tensor in one.op.kind.results if tensor.dtype == "f32")


REDUCE = """func.func @main(%x: tensor<8x8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.negate %x : tensor<8x8xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}"""


def test_a_sum_of_negatives_is_the_negative_of_a_sum() -> None:
    assert names(REDUCE) == ["constant", "reduce", "negate"]
    assert names(REDUCE.replace("stablehlo.add", "stablehlo.maximum")) == ["constant", "negate", "reduce"]


@pytest.mark.parametrize(
    "left, right, dims, copies",
    [
        ("4x2x3xf32", "4x3x5xf32", "batching_dims = [0] x [0], contracting_dims = [2] x [1]", 0),
        ("4x2x3xf32", "4x5x3xf32", "batching_dims = [0] x [0], contracting_dims = [2] x [2]", 0),
        ("4x3x2xf32", "4x5x3xf32", "batching_dims = [0] x [0], contracting_dims = [1] x [2]", 0),
        ("2x4x3xf32", "4x5x3xf32", "batching_dims = [1] x [0], contracting_dims = [2] x [2]", 1),
        ("4x2x3xf32", "5x4x3xf32", "batching_dims = [0] x [1], contracting_dims = [2] x [2]", 1),
    ],
)
def test_products_read_each_matrix_of_a_batch_as_it_is_or_transposed(
    left: str, right: str, dims: str, copies: int
) -> None:
    assert names(product(left, right, "4x2x5xf32", dims)) == ["transpose"] * copies + ["dot_general"]
