"""Who reads a value, also where calls and loops hand it on."""

from __future__ import annotations

import pyshardy
from pyshardy.ir.functions import main_function
from pyshardy.ir.readers import Readers

PROGRAM = """
func.func @main(%a: tensor<8xi32>, %b: tensor<8xi32>) -> tensor<8xi32> {
  %0 = func.call @shifted(%a) : (tensor<8xi32>) -> tensor<8xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %1:2 = stablehlo.while(%i = %zero, %x = %0) : tensor<i32>, tensor<8xi32>
    cond {
      %c = stablehlo.compare LT, %i, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %n = stablehlo.negate %x : tensor<8xi32>
      stablehlo.return %i, %n : tensor<i32>, tensor<8xi32>
    }
  %2 = stablehlo.multiply %b, %b : tensor<8xi32>
  return %2 : tensor<8xi32>
}
func.func private @shifted(%c: tensor<8xi32>) -> tensor<8xi32> {
  %0 = stablehlo.add %c, %c : tensor<8xi32>
  return %0 : tensor<8xi32>
}
"""


def readers_of(place: int, same: tuple[str, ...]) -> list[str]:
    root = pyshardy.load(PROGRAM).root
    found = Readers(root, same).of(main_function(root).region.blocks[0].args[place])
    return [op.name for op, _ in found]


def test_a_value_is_followed_through_a_call_back_and_into_a_loop() -> None:
    found = readers_of(0, ("stablehlo.add",))
    assert found[:3] == ["func.call", "stablehlo.add", "stablehlo.add"]  # it reads the value twice
    assert found[3:] == ["func.return", "stablehlo.while", "stablehlo.negate"]


def test_what_another_op_makes_is_not_the_value() -> None:
    assert set(readers_of(0, ())) == {"func.call", "stablehlo.add"}
    assert set(readers_of(1, ("stablehlo.add",))) == {"stablehlo.multiply"}
