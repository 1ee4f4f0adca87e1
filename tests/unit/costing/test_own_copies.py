"""Copies of operands in the order of the products that read them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyshardy.costing.compilers import ACCELERATOR
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse
from pyshardy.costing.kernels import Kernel

from .build import described

GPU = replace(ACCELERATOR, merges_kernels=True)
TYPE = "tensor<4x64x64xbf16>"
TEXT = f"""func.func @main(%x: {TYPE}, %y: {TYPE}) -> ({TYPE}, {TYPE}) {{
  %t = stablehlo.transpose %x, dims = [0, 2, 1] : ({TYPE}) -> {TYPE}
  %a = stablehlo.tanh %t : {TYPE}
  %d = stablehlo.dot_general %a, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1] : ({TYPE}, {TYPE}) -> {TYPE}
  %e = stablehlo.dot_general %a, %d, batching_dims = [0] x [0], contracting_dims = [1] x [1] : ({TYPE}, {TYPE}) -> {TYPE}
  return %d, %e : {TYPE}, {TYPE}
}}"""


def kernels(text: str) -> tuple[Kernel, ...]:
    return fuse(flatten(described(text)), GPU).kernels


def roots(text: str) -> list[str]:
    return [kernel.root.kind.name.partition(".")[2] for kernel in kernels(text)]


def test_a_product_that_sums_over_other_dimensions_reads_a_copy() -> None:
    assert roots(TEXT) == ["tanh", "dot_general", "tanh", "dot_general"]
    first, product, copy, other = kernels(TEXT)
    assert first.writes != copy.writes and first.reads == copy.reads and first.root.kind == copy.root.kind
    assert set(first.writes) <= set(product.reads)
    assert set(copy.writes) <= set(other.reads) and set(copy.writes) <= set(other.root.operands)


def test_a_copy_has_a_type() -> None:
    flat = flatten(described(TEXT))
    (value,) = fuse(flat, GPU).kernels[2].writes
    assert flat.tensors[value].shape == (4, 64, 64) and flat.tensors[value].dtype == "bf16"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("contracting_dims = [1] x [1]", "contracting_dims = [2] x [1]"),
        ("stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<4x64x64xbf16>) -> ", "stablehlo.negate %x : "),
    ],
    ids=["the same dimensions", "no transpose"],
)
def test_others_share_it(before: str, after: str) -> None:
    assert before in TEXT
    assert roots(TEXT.replace(before, after)) == ["tanh", "dot_general", "dot_general"]


def test_a_matrix_is_read_in_either_order() -> None:
    text = TEXT.replace("4x64x64", "64x64").replace("[0, 2, 1]", "[1, 0]").replace("batching_dims = [0] x [0], ", "")
    text = text.replace("[2] x [1]", "[1] x [0]").replace("[1] x [1]", "[0] x [0]")
    assert roots(text) == ["tanh", "dot_general", "dot_general"]


def test_loops_have_copies_too() -> None:
    body = "\n".join(TEXT.splitlines()[1:-2])
    text = f"""func.func @main(%x: {TYPE}, %y: {TYPE}) -> {TYPE} {{
      %c = stablehlo.constant dense<0> : tensor<i32>
      %r:2 = stablehlo.while(%i = %c, %z = %y) : tensor<i32>, {TYPE}
      cond {{
        %n = stablehlo.constant dense<5> : tensor<i32>
        %b = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %b : tensor<i1>
      }} do {{
        %one = stablehlo.constant dense<1> : tensor<i32>
        %j = stablehlo.add %i, %one : tensor<i32>
        {body.replace("%y", "%z")}
        stablehlo.return %j, %e : tensor<i32>, {TYPE}
      }}
      return %r#1 : {TYPE}
    }}"""
    (loop,) = (kernel for kernel in kernels(text) if kernel.inner)
    names = [kernel.root.kind.name for kernel in loop.inner[1].kernels]
    assert names.count("stablehlo.tanh") == 2
