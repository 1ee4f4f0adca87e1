"""Products with vectors, which XLA for GPUs computes as sums."""

from __future__ import annotations

import pytest

from pyshardy.costing.compilers import ACCELERATOR, XLA_ON_GPU, Compiler
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse
from pyshardy.costing.lowering import lower
from pyshardy.costing.peak import peak_bytes

from .build import FIVE_ROUNDS, described


def program(vector: str, matrix: str, dims: str, result: str) -> str:
    return f"""func.func @main(%q: tensor<{vector}xbf16>, %k: tensor<{matrix}xbf16>) -> tensor<{result}xbf16> {{
      %t = stablehlo.tanh %k : tensor<{matrix}xbf16>
      %d = stablehlo.dot_general %q, %t, {dims}
        : (tensor<{vector}xbf16>, tensor<{matrix}xbf16>) -> tensor<{result}xbf16>
      return %d : tensor<{result}xbf16>
    }}"""


ATTENTION = program("8x16", "8x2048x16", "batching_dims = [0] x [0], contracting_dims = [1] x [2]", "8x2048")


def names(text: str, compiler: Compiler = XLA_ON_GPU) -> list[list[str]]:
    flat = lower(flatten(described(text), compiler), compiler)
    return [[op.kind.name.partition(".")[2] for op in kernel.ops] for kernel in fuse(flat, compiler).kernels]


def test_a_batch_of_vectors_becomes_a_sum_beside_what_it_reads() -> None:
    assert names(ATTENTION) == [["tanh", "multiply", "reduce"]]
    assert names(ATTENTION, ACCELERATOR) == [["tanh"], ["dot_general"]]
    held = 2 * (8 * 16 + 8 * 2048 * 16 + 8 * 2048)
    assert peak_bytes(described(ATTENTION), XLA_ON_GPU) == held
    assert peak_bytes(described(ATTENTION), ACCELERATOR) == held + 2 * 8 * 2048 * 16


@pytest.mark.parametrize(
    ("vector", "matrix", "dims", "result"),
    [
        ("8x2x16", "8x2048x16", "batching_dims = [0] x [0], contracting_dims = [2] x [2]", "8x2x2048"),
        ("4096", "4096x4096", "contracting_dims = [0] x [0]", "4096"),
        ("64x1", "64x1", "contracting_dims = [1] x [1]", "64x64"),
    ],
    ids=["matrices", "a large matrix", "an outer product"],
)
def test_others_stay_products(vector: str, matrix: str, dims: str, result: str) -> None:
    found = names(program(vector, matrix, dims, result))
    assert found[-1][-1] == "dot_general" and "reduce" not in {name for kernel in found for name in kernel}


def test_loops_have_them_too() -> None:
    inside = ATTENTION.splitlines()[1:-2]
    text = f"""func.func @main(%q: tensor<8x16xbf16>, %k: tensor<8x2048x16xbf16>) -> tensor<8x2048xbf16> {{
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %s = stablehlo.constant dense<0.0> : tensor<8x2048xbf16>
      %r:2 = stablehlo.while(%i = %zero, %z = %s) : tensor<i32>, tensor<8x2048xbf16>
{FIVE_ROUNDS}        {" ".join(inside)}
        %e = stablehlo.add %d, %z : tensor<8x2048xbf16>
        stablehlo.return %j, %e : tensor<i32>, tensor<8x2048xbf16>
      }}
      return %r#1 : tensor<8x2048xbf16>
    }}"""
    flat = lower(flatten(described(text), XLA_ON_GPU), XLA_ON_GPU)
    (loop,) = (one for one in flat.body.ops if one.inner)
    found = {one.op.kind.name for one in loop.inner[1].ops}
    assert "stablehlo.reduce" in found and "stablehlo.dot_general" not in found
