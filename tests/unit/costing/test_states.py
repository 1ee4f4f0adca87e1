"""What compilers drop from the state of a loop."""

from __future__ import annotations

from pyshardy.costing.flatten import flatten

from .build import FIVE_ROUNDS, LOOP, described

COUNTERS = f"""
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:4 = stablehlo.while(%i = %zero, %k = %zero, %a = %x, %d = %x)
      : tensor<i32>, tensor<i32>, tensor<64xf32>, tensor<64xf32>
{FIVE_ROUNDS}    %l = stablehlo.add %k, %one : tensor<i32>
    %f = stablehlo.convert %k : (tensor<i32>) -> tensor<f32>
    %s = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %b = stablehlo.multiply %a, %s : tensor<64xf32>
    %e = stablehlo.add %d, %a : tensor<64xf32>
    stablehlo.return %j, %l, %b, %e : tensor<i32>, tensor<i32>, tensor<64xf32>, tensor<64xf32>
  }}
  return %0#2 : tensor<64xf32>
}}
"""


def state(text: str) -> int:
    """How many values the loop of a program carries."""
    (loop,) = [flat for flat in flatten(described(text)).body.ops if flat.op.is_loop]
    condition, body = loop.inner
    assert len(condition.arguments) == len(body.arguments) == len(body.results) == len(loop.op.operands)
    return len(loop.op.operands)


def test_two_counters_that_are_always_equal_are_one_and_what_nothing_uses_is_gone() -> None:
    assert state(COUNTERS) == 2


def test_counters_that_differ_stay() -> None:
    other = COUNTERS.replace("%l = stablehlo.add %k, %one", "%l = stablehlo.subtract %k, %one")
    assert state(other) == 3
    other = COUNTERS.replace("%k = %zero", "%k = %two").replace(
        "%0:4", "%two = stablehlo.constant dense<2> : tensor<i32>\n  %0:4"
    )
    assert state(other) == 3


def test_state_that_is_used_behind_the_loop_stays() -> None:
    assert state(COUNTERS.replace("return %0#2 : tensor<64xf32>\n}", "return %0#3 : tensor<64xf32>\n}")) == 3


def test_a_loop_that_nothing_uses_is_gone() -> None:
    text = LOOP.replace("return %0#1 : tensor<64xf32>\n}", "return %x : tensor<64xf32>\n}")
    assert not flatten(described(text)).body.ops


def test_what_is_computed_of_constants_is_one() -> None:
    text = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
      %1 = stablehlo.tanh %0 : tensor<2xf32>
      %2 = stablehlo.add %x, %1 : tensor<2xf32>
      return %2 : tensor<2xf32>
    }"""
    assert [flat.op.kind.name for flat in flatten(described(text)).body.ops] == ["stablehlo.constant", "stablehlo.add"]
