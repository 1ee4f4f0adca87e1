"""Arrays in tiles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyshardy.costing.compilers import ACCELERATOR, XLA_ON_TPU
from pyshardy.costing.flatten import flatten
from pyshardy.costing.lowering import lower
from pyshardy.costing.peak import find_peak
from pyshardy.costing.program import CostTensor
from pyshardy.costing.tiles import tiled_bytes

from .build import described


@pytest.mark.parametrize(
    ("shape", "lanes", "times"),
    [
        ((512, 256), (0, 1), 1.0),
        ((100, 256), (0, 1), 1.04),  # 100 rows become 104
        ((64, 64), (0, 1), 2.0),
        ((512, 16, 64, 64), (2, 3), 2.0),  # the batch of a product is not along the lanes
        ((512, 16, 64, 64), (0, 2, 3), 1.0),
        ((4, 128), (0, 1), 1.0),  # tiles of four rows
        ((5, 128), (0, 1), 1.6),
        ((300,), (0,), 1.0),
        ((128, 1, 12, 196), (1, 3), 256 / 196),
    ],
)
def test_dimensions_are_rounded_up(shape: tuple[int, ...], lanes: tuple[int, ...], times: float) -> None:
    bytes = 2
    for size in shape:
        bytes *= size
    assert tiled_bytes(CostTensor(shape, "bf16", bytes), lanes) == pytest.approx(times * bytes, rel=1e-6)


HEADS = "tensor<64x8x64x64xbf16>"
TEXT = f"""func.func @main(%q: {HEADS}, %k: {HEADS}) -> tensor<64x8xbf16> {{
  %zero = stablehlo.constant dense<0.0> : tensor<bf16>
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3]
    : ({HEADS}, {HEADS}) -> {HEADS}
  %2 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [2, 3]
    : ({HEADS}, tensor<bf16>) -> tensor<64x8xbf16>
  return %2 : tensor<64x8xbf16>
}}"""


def test_what_a_product_writes_is_in_tiles() -> None:
    program = described(TEXT)
    tiled, plain = (
        find_peak(program, lower(flatten(program, one), one), one).temporary_bytes
        for one in (XLA_ON_TPU, replace(XLA_ON_TPU, tiles=False))
    )
    whole = 64 * 8 * 64 * 64 * 2
    assert (tiled, plain) == (2 * whole, whole)
    assert not ACCELERATOR.tiles
