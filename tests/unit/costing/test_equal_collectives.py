"""Equal all-gathers and permutations that are one, as XLA for TPUs makes them."""

from __future__ import annotations

import pytest

from pyshardy.costing.equal_collectives import with_equal_collectives_merged
from pyshardy.costing.program import CostProgram, walk_ops

from .build import FIVE_ROUNDS, described

GATHER = """%{} = "stablehlo.all_gather"({}) <{{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = {}, type = 0>,
  replica_groups = dense<{}> : tensor<{}xi64>, use_global_device_ids}}> : (tensor<8x4xf32>) -> tensor<16x4xf32>
"""
PERMUTE = """%{} = "stablehlo.collective_permute"({}) <{{channel_handle = #stablehlo.channel_handle<handle = {}, type = 0>,
  source_target_pairs = dense<{}> : tensor<{}xi64>}}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
"""
ROWS, COLUMNS = ("[[0, 1], [2, 3]]", "2x2"), ("[[0, 2], [1, 3]]", "2x2")
RING, BACK = ("[[0, 1], [1, 0]]", "2x2"), ("[[0, 2], [2, 0]]", "2x2")


def program(first: str, second: str, between: int, type: str) -> CostProgram:
    """Two collectives, the first read by a chain of ops at whose end the second is read."""
    names = ["a", *(f"n{at}" for at in range(between))]
    chain = "".join(f"%{after} = stablehlo.negate %{before} : {type}\n" for before, after in zip(names, names[1:]))
    end = f"%r = stablehlo.add %{names[-1]}, %b : {type}"
    mesh = '"x"=2, "y"=2'
    return described(
        f"""sdy.mesh @mesh = <[{mesh}]>
        func.func @main(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) -> {type} {{
          {first} {chain} {second} {end}
          return %r : {type}
        }}"""
    )


def count(given: CostProgram) -> int:
    return sum(op.traffic is not None for op in walk_ops(given.body))


def gathers(between: int, operand: str = "%x", groups: tuple[str, str] = ROWS) -> CostProgram:
    first, second = GATHER.format("a", "%x", 1, *ROWS), GATHER.format("b", operand, 2, *groups)
    return program(first, second, between, "tensor<16x4xf32>")


def permutations(between: int, pairs: tuple[str, str] = RING) -> CostProgram:
    first, second = PERMUTE.format("a", "%x", 1, *RING), PERMUTE.format("b", "%x", 2, *pairs)
    return program(first, second, between, "tensor<8x4xf32>")


@pytest.mark.parametrize("given", [gathers(0), gathers(5), permutations(0), permutations(50)])
def test_equal_ones_are_one(given: CostProgram) -> None:
    found = with_equal_collectives_merged(given, 5)
    assert count(given) == 2 and count(found) == 1
    made = set(found.body.arguments)
    for op in walk_ops(found.body):
        assert made.issuperset(op.operands)
        made.update(op.results)
    assert made.issuperset(found.body.results)


@pytest.mark.parametrize(
    "given",
    [gathers(6), gathers(0, operand="%y"), gathers(0, groups=COLUMNS), permutations(0, BACK)],
    ids=["far apart", "of another value", "over other devices", "to other devices"],
)
def test_others_stay(given: CostProgram) -> None:
    assert count(with_equal_collectives_merged(given, 5)) == 2


def test_what_is_read_inside_a_loop_is_the_one_that_is_kept() -> None:
    text = f"""sdy.mesh @mesh = <["x"=2, "y"=2]>
    func.func @main(%x: tensor<8x4xf32>) -> (tensor<16x4xf32>, tensor<16x4xf32>) {{
      {GATHER.format("a", "%x", 1, *ROWS)} {GATHER.format("b", "%x", 2, *ROWS)}
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %r:2 = stablehlo.while(%i = %zero, %s = %a) : tensor<i32>, tensor<16x4xf32>
      {FIVE_ROUNDS}%t = stablehlo.add %s, %b : tensor<16x4xf32>
        stablehlo.return %j, %t : tensor<i32>, tensor<16x4xf32>
      }}
      return %r#1, %b : tensor<16x4xf32>, tensor<16x4xf32>
    }}"""
    given = described(text)
    found = with_equal_collectives_merged(given, 5)
    kept = next(op.results[0] for op in found.body.ops if op.traffic is not None)
    loop = next(op for op in found.body.ops if op.is_loop)
    assert count(found) == 1 and found.body.results[1] == kept
    assert any(kept in op.operands for op in loop.regions[1].ops)
