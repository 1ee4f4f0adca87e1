"""What XLA for TPUs reduces and changes in one kernel is not overwritten."""

from __future__ import annotations

import pytest

from pyshardy.costing.compilers import XLA_ON_TPU
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse

from .build import described

MATRIX, ROW = "tensor<512x512xf32>", "tensor<512xf32>"
PRODUCT = f"%m = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : ({MATRIX}, {MATRIX}) -> {MATRIX}\n"
SUM = f"""%zero = stablehlo.constant dense<0.0> : tensor<f32>
%sum = stablehlo.reduce(%m init: %zero) applies stablehlo.add across dimensions = [1] : ({MATRIX}, tensor<f32>) -> {ROW}
"""
NEGATED = f"%n = stablehlo.negate %m : {MATRIX}\n"
CENTRED = f"""%b = stablehlo.broadcast_in_dim %sum, dims = [0] : ({ROW}) -> {MATRIX}
%n = stablehlo.subtract %m, %b : {MATRIX}
"""


def overwrites(*body: str) -> bool:
    """Whether the kernel that changes the matrix may write where it was."""
    text = f"func.func @main(%x: {MATRIX}) -> ({ROW}, {MATRIX}) {{ {''.join(body)} return %sum, %n : {ROW}, {MATRIX} }}"
    kernels = fuse(flatten(described(text), XLA_ON_TPU), XLA_ON_TPU).kernels
    (product,) = [kernel for kernel in kernels if any(op.kind.name == "stablehlo.dot_general" for op in kernel.ops)]
    (change,) = [kernel for kernel in kernels if kernel.root.kind.name in ("stablehlo.negate", "stablehlo.subtract")]
    return change.in_place == frozenset(product.writes)


@pytest.mark.parametrize("order", [(SUM, NEGATED), (NEGATED, SUM)], ids=["sum first", "sum last"])
def test_what_a_reduction_beside_it_reads_stays(order: tuple[str, str]) -> None:
    assert not overwrites(PRODUCT, *order)


def test_what_needs_the_reduction_runs_after_it_and_overwrites() -> None:
    assert overwrites(PRODUCT, SUM, CENTRED)
