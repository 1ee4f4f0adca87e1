"""What compilers for TPUs compute in the kernel of a product."""

from __future__ import annotations

from dataclasses import replace

from pyshardy.costing.compilers import ACCELERATOR
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse

from .build import described

TPU = replace(ACCELERATOR, fuses_into_products=True)
TYPE = "tensor<64x64xf32>"
DOT = f"stablehlo.dot_general %a, %y, contracting_dims = [1] x [0] : ({TYPE}, {TYPE}) -> {TYPE}"


def text_of(body: str, results: str) -> str:
    types = ", ".join([TYPE] * len(results.split(", ")))
    return f"func.func @main(%x: {TYPE}, %y: {TYPE}) -> ({types}) {{ {body} return {results} : {types} }}"


def names(body: str, results: str) -> list[list[str]]:
    found = fuse(flatten(described(text_of(body, results))), TPU).kernels
    return [[op.kind.name.partition(".")[2] for op in kernel.ops] for kernel in found]


def test_operands_and_results_are_computed_beside_the_product() -> None:
    body = f"%a = stablehlo.negate %x : {TYPE}\n%d = {DOT}\n%e = stablehlo.tanh %d : {TYPE}\n"
    assert names(body, "%e") == [["negate", "dot_general", "tanh"]]


def test_a_result_that_others_read_is_stored() -> None:
    body = f"%a = stablehlo.negate %x : {TYPE}\n%d = {DOT}\n%e = stablehlo.tanh %d : {TYPE}\n"
    assert names(body, "%d, %e") == [["negate", "dot_general"], ["tanh"]]


def test_a_product_of_a_product_is_a_kernel_of_its_own() -> None:
    body = f"%a = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : ({TYPE}, {TYPE}) -> {TYPE}\n%d = {DOT}\n"
    assert names(body, "%d") == [["dot_general"], ["dot_general"]]


TWO = f"""%d = {DOT}
%e = stablehlo.dot_general %y, %a, contracting_dims = [1] x [0] : ({TYPE}, {TYPE}) -> {TYPE}
"""


def test_what_only_products_read_is_computed_in_each() -> None:
    body = f"%a = stablehlo.tanh %x : {TYPE}\n{TWO}"
    assert names(body, "%d, %e") == [["tanh", "dot_general"], ["tanh", "dot_general"]]


def test_what_others_read_too_is_stored_once() -> None:
    body = f"%a = stablehlo.multiply %x, %y : {TYPE}\n{TWO}"
    assert names(body, "%a, %d, %e") == [["multiply"], ["dot_general"], ["dot_general"]]


BETWEEN = f"""%b = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : ({TYPE}, {TYPE}) -> {TYPE}
    {{}}
    %d = {DOT}
    """


def test_what_one_op_reads_of_the_product_before_is_computed_there() -> None:
    body = BETWEEN.format(f"%a = stablehlo.multiply %b, %x : {TYPE}")
    assert names(body, "%d") == [["dot_general", "multiply"], ["dot_general"]]


def test_where_two_ops_read_the_product_before_both_are_computed_in_the_one_behind() -> None:
    body = BETWEEN.format(f"%t = stablehlo.tanh %b : {TYPE}\n%a = stablehlo.multiply %t, %b : {TYPE}")
    assert names(body, "%d") == [["dot_general"], ["tanh", "multiply", "dot_general"]]


def test_what_converts_16_bit_floats_is_computed_in_the_product_behind() -> None:
    narrow = TYPE.replace("f32", "bf16")
    text = f"""func.func @main(%x: {narrow}, %z: {TYPE}, %y: {TYPE}) -> {TYPE} {{
      %b = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : ({narrow}, {narrow}) -> {narrow}
      %t = stablehlo.tanh %b : {narrow}
      %f = stablehlo.convert %t : ({narrow}) -> {TYPE}
      %a = stablehlo.multiply %f, %z : {TYPE}
      %d = {DOT}
      return %d : {TYPE}
    }}"""
    found = fuse(flatten(described(text)), TPU).kernels
    assert [[op.kind.name.partition(".")[2] for op in kernel.ops] for kernel in found] == [
        ["dot_general"],
        ["tanh", "convert", "multiply", "dot_general"],
    ]


GELU = f"""%b = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : ({TYPE}, {TYPE}) -> {TYPE}
    %s = stablehlo.multiply %b, %b : {TYPE}
    %i = stablehlo.add %b, %s : {TYPE}
    %t = stablehlo.tanh %i : {TYPE}
    %a = stablehlo.multiply %b, %t : {TYPE}
    %d = {DOT}
    %g = stablehlo.subtract %x, %t : {TYPE}
    """


def test_what_is_computed_from_one_array_is_computed_again() -> None:
    again = ["multiply", "add", "tanh"]
    assert names(GELU, "%d, %g") == [["dot_general"], [*again, "multiply", "dot_general"], [*again, "subtract"]]
    stored = fuse(flatten(described(text_of(GELU, "%d, %g"))), ACCELERATOR).kernels
    assert [len(kernel.ops) for kernel in stored] == [1, 3, 1, 1, 1]  # other chips store the tanh


GATHERED = """sdy.mesh @mesh = <["x"=4]>
func.func @main(%x: tensor<64x64xf32>, %w: tensor<16x64xf32>) -> tensor<64x64xf32> {
  %a = stablehlo.tanh %x : tensor<64x64xf32>
  %g = "stablehlo.all_gather"(%w) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
    replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<16x64xf32>) -> tensor<64x64xf32>
  %d = stablehlo.dot_general %a, %g, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %e = stablehlo.tanh %d : tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}"""


def test_a_product_with_a_gathered_operand_reads_and_stores() -> None:
    """The partitioner cuts it into parts: it is a loop, and computes nothing else."""
    found = fuse(flatten(described(GATHERED)), TPU).kernels
    assert [[op.kind.name.partition(".")[2] for op in one.ops] for one in found] == [
        ["tanh"], ["all_gather"], ["dot_general"], ["tanh"],
    ]  # fmt: skip
