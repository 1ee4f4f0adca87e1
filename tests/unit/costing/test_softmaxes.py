"""Softmaxes that the kernel of a product computes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyshardy.costing.compilers import XLA_ON_TPU
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse
from pyshardy.costing.kernels import Kernel
from pyshardy.costing.peak import peak_bytes

from .build import described

NARROW, WIDE, ROWS = "tensor<64x512xbf16>", "tensor<64x512xf32>", "tensor<64xf32>"
TEXT = f"""func.func @main(%x: tensor<64x128xbf16>, %w: tensor<128x512xbf16>, %v: tensor<512x128xbf16>, %more: {WIDE})
    -> (tensor<64x128xbf16>, {NARROW}) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %scale = stablehlo.constant dense<0.125> : {WIDE}
  %s = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x128xbf16>, tensor<128x512xbf16>) -> {NARROW}
  %f = stablehlo.convert %s : ({NARROW}) -> {WIDE}
  %c = CHANGED : {WIDE}
  %m = stablehlo.reduce(%c init: %least) applies stablehlo.maximum across dimensions = [1] : ({WIDE}, tensor<f32>) -> {ROWS}
  %n = stablehlo.broadcast_in_dim %m, dims = [0] : ({ROWS}) -> {WIDE}
  %d = stablehlo.subtract %c, %n : {WIDE}
  %e = stablehlo.exponential %d : {WIDE}
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : ({WIDE}, tensor<f32>) -> {ROWS}
  %u = stablehlo.broadcast_in_dim %t, dims = [0] : ({ROWS}) -> {WIDE}
  %p = stablehlo.divide %e, %u : {WIDE}
  %b = stablehlo.convert %p : ({WIDE}) -> {NARROW}
  %o = stablehlo.dot_general %b, %v, contracting_dims = [1] x [0] : ({NARROW}, tensor<512x128xbf16>) -> tensor<64x128xbf16>
  return %o, OTHER : tensor<64x128xbf16>, {NARROW}
}}"""
SCALED = "stablehlo.multiply %f, %scale"


def kernels(changed: str = SCALED, other: str = "%b", longest: int = 512) -> tuple[Kernel, ...]:
    text = TEXT.replace("CHANGED", changed).replace("OTHER", other)
    compiler = replace(XLA_ON_TPU, softmax_row=longest)
    return fuse(flatten(described(text), compiler), compiler).kernels


def test_the_product_writes_exponentials_and_their_sums() -> None:
    first, *rest = kernels()
    names = [op.kind.name.partition(".")[2] for op in first.ops]
    assert names[0] == "dot_general" and names[-1] == "exponential" and names.count("reduce") == 2
    written = first.root.kind.results[0]
    assert (written.dtype, written.shape, len(first.writes)) == ("f32", (64, 512), 2)
    assert all("exponential" not in op.kind.name for one in rest for op in one.ops)


@pytest.mark.parametrize(
    ("changed", "other", "longest"),
    [
        (SCALED, "%b", 511),  # the rows are longer
        ("stablehlo.minimum %f, %f", "%b", 512),  # two arrays of scores: not what a scale or a mask is
        (SCALED, "%b", 0),  # not this compiler
        (SCALED, "%s", 512),  # the product itself is needed
    ],
)
def test_other_products_are_stored(changed: str, other: str, longest: int) -> None:
    first = kernels(changed, other, longest)[0]
    assert "stablehlo.exponential" not in [op.kind.name for op in first.ops] and len(first.writes) == 1


def test_exponentials_take_more_memory_than_the_product() -> None:
    masked = TEXT.replace("CHANGED", SCALED).replace("OTHER", "%b")
    stored = replace(XLA_ON_TPU, softmax_row=0)
    more = peak_bytes(described(masked), XLA_ON_TPU) - peak_bytes(described(masked), stored)
    assert 64 * 512 * 2 <= more < 64 * 512 * 4
