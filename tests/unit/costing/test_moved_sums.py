"""Sums over devices that loops only add up."""

from __future__ import annotations

import pytest

from pyshardy.costing.moved_sums import with_moved_sums
from pyshardy.costing.program import CostProgram, walk_ops

from .build import FIVE_ROUNDS, described

ADDED = "%s = stablehlo.add %a, %r : tensor<64xf32>"
TEXT = f"""sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %w:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<64xf32>
{FIVE_ROUNDS}
    %t = stablehlo.tanh %y : tensor<64xf32>
    %r = "stablehlo.all_reduce"(%t) <{{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}}> ({{
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %u = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %u : tensor<f32>
    }}) : (tensor<64xf32>) -> tensor<64xf32>
    {ADDED}
    stablehlo.return %j, %s : tensor<i32>, tensor<64xf32>
  }}
  return %w#1 : tensor<64xf32>
}}"""


def places(program: CostProgram) -> list[str]:
    """Where sums over devices are: in a loop, or in the main function."""
    outside = [op for op in program.body.ops if op.traffic is not None]
    inside = [op for op in walk_ops(program.body) if op.traffic is not None and op not in outside]
    return ["loop"] * len(inside) + ["after"] * len(outside)


def test_a_sum_that_is_only_added_up_follows_the_loop() -> None:
    given = described(TEXT)
    found = with_moved_sums(given)
    assert (places(given), places(found)) == (["loop"], ["after"])
    loop, total = (op for op in found.body.ops if op.is_loop or op.traffic is not None)
    assert total.operands == (loop.results[1],) and total.results == found.body.results
    (addition,) = (
        op
        for op in walk_ops(loop.regions[1])
        if op.kind.name == "stablehlo.add" and op.results[0] in loop.regions[1].results[1:]
    )
    (made,) = (op for op in walk_ops(loop.regions[1]) if op.kind.name == "stablehlo.tanh")
    assert made.results[0] in addition.operands


@pytest.mark.parametrize(
    "other",
    [
        "%s = stablehlo.multiply %a, %r : tensor<64xf32>",
        "%s = stablehlo.add %r, %r : tensor<64xf32>",
        "%v = stablehlo.tanh %a : tensor<64xf32>\n%b = stablehlo.add %v, %r : tensor<64xf32>\n"
        "%s = stablehlo.add %a, %b : tensor<64xf32>",
        "%v = stablehlo.tanh %r : tensor<64xf32>\n%s = stablehlo.add %a, %v : tensor<64xf32>",
    ],
    ids=["a product", "nothing is added up", "the total is read", "not linear"],
)
def test_others_stay(other: str) -> None:
    given = described(TEXT.replace(ADDED, other))
    assert with_moved_sums(given) is given
