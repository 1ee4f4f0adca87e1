"""What is computed twice, and what is meant to be."""

from __future__ import annotations

from pyshardy.costing.flatten import flatten

from .build import described

TWICE = """
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  %1 = stablehlo.optimization_barrier %x : tensor<8xf32>
  %2 = stablehlo.tanh %1 : tensor<8xf32>
  %3 = func.call @twice(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
func.func private @twice(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  %1 = stablehlo.add %0, %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}
"""


def names(text: str) -> list[str]:
    return [flat.op.kind.name.partition(".")[2] for flat in flatten(described(text)).body.ops]


def test_what_is_computed_twice_is_computed_once_but_not_behind_a_barrier() -> None:
    assert names(TWICE) == ["tanh", "tanh", "add"]
    body = flatten(described(TWICE)).body
    assert {flat.op.operands for flat in body.ops[:2]} == {(body.arguments[0],)}


def test_ops_with_other_attributes_are_not_taken_for_one_another() -> None:
    text = """func.func @main(%x: tensor<8xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
      %0 = stablehlo.slice %x [0:4] : (tensor<8xf32>) -> tensor<4xf32>
      %1 = stablehlo.slice %x [4:8] : (tensor<8xf32>) -> tensor<4xf32>
      %2 = stablehlo.slice %x [0:4] : (tensor<8xf32>) -> tensor<4xf32>
      return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    }"""
    assert names(text) == ["slice", "slice"]


def test_calls_are_inlined_with_numbers_of_their_own() -> None:
    text = TWICE.replace(
        "%0 = stablehlo.tanh %x : tensor<8xf32>\n  %1 = stablehlo.opt",
        "%0 = func.call @twice(%2) : (tensor<8xf32>) -> tensor<8xf32>\n  %1 = stablehlo.opt",
    )
    text = text.replace("%0 = func.call @twice(%2)", "%0 = func.call @twice(%x)")
    flat = flatten(described(text))
    results = [value for one in flat.body.ops for value in one.op.results]
    assert len(results) == len(set(results))
    assert len(flat.body.results) == 3
