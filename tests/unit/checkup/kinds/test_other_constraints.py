"""Constraints with other axes, and whether the memory that they save was held for nothing."""

from __future__ import annotations

import pyshardy
from pyshardy.checkup.kinds.code import other_cures

PROGRAM = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%0: tensor<16x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {"y"}]>}) -> tensor<16x16x16xf32> {
  %1 = stablehlo.tanh %0 : tensor<16x16x16xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{"x"}, {}, {"y"}]> : tensor<16x16x16xf32> loc("f"("net.py":7:0))
  return %2 : tensor<16x16x16xf32>
}"""


def test_axes_that_only_split_another_dimension_free_no_memory() -> None:
    """Two that are exchanged, or one that is left out, may be a mistake."""
    cures = {one.text: one.frees for one in other_cures(pyshardy.propagate(PROGRAM))}
    assert cures == {
        "constrain to P('y', None, 'x') at net.py:7": True,
        "constrain to P(None, None, 'y') at net.py:7": True,
        "constrain to P('x') at net.py:7": True,
        "constrain to P(None, 'x', 'y') at net.py:7": False,
        "constrain to P('x', 'y') at net.py:7": False,
    }
