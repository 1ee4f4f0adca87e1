"""What is computed twice, and what is meant to be."""

from __future__ import annotations

from dataclasses import replace

from pyshardy.costing.compilers import ACCELERATOR, Compiler
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
    dropped = replace(ACCELERATOR, keeps_barriers=False)
    body = flatten(described(TWICE), dropped).body
    assert [flat.op.kind.name.partition(".")[2] for flat in body.ops] == ["tanh", "tanh", "add"]
    assert {flat.op.operands for flat in body.ops[:2]} == {(body.arguments[0],)}
    assert names(TWICE) == ["tanh", "optimization_barrier", "tanh", "add"]


def test_ops_with_other_attributes_are_not_taken_for_one_another() -> None:
    text = """func.func @main(%x: tensor<8xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
      %0 = stablehlo.slice %x [0:4] : (tensor<8xf32>) -> tensor<4xf32>
      %1 = stablehlo.slice %x [4:8] : (tensor<8xf32>) -> tensor<4xf32>
      %2 = stablehlo.slice %x [0:4] : (tensor<8xf32>) -> tensor<4xf32>
      return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    }"""
    assert names(text) == ["slice", "slice"]


def test_what_changes_nothing_is_no_op() -> None:
    text = """func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %one = stablehlo.constant dense<1.0> : tensor<8xf32>
      %two = stablehlo.constant dense<2.0> : tensor<8xf32>
      %0 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<8xf32>
      %1 = stablehlo.add %0, %x : tensor<8xf32>
      %2 = stablehlo.divide %1, %one : tensor<8xf32>
      %3 = stablehlo.subtract %2, %0 : tensor<8xf32>
      %4 = stablehlo.multiply %3, %one : tensor<8xf32>
      OPS
      return %5 : tensor<8xf32>
    }"""
    assert names(text.replace("OPS", "%5 = stablehlo.tanh %4 : tensor<8xf32>")) == ["tanh"]
    for kept in ("subtract %0, %4", "divide %one, %4", "multiply %4, %two", "add %4, %one"):
        found = names(text.replace("OPS", f"%5 = stablehlo.{kept} : tensor<8xf32>"))
        assert found[-1] == kept.split()[0]


def test_reshapes_are_ops_to_compilers_that_keep_them() -> None:
    text = """func.func @main(%x: tensor<8x1xf32>) -> (tensor<2x4xf32>, tensor<8x1xf32>) {
      %0 = stablehlo.reshape %x : (tensor<8x1xf32>) -> tensor<8xf32>
      %1 = stablehlo.reshape %0 : (tensor<8xf32>) -> tensor<2x4xf32>
      %2 = stablehlo.reshape %0 : (tensor<8xf32>) -> tensor<8x1xf32>
      return %1, %2 : tensor<2x4xf32>, tensor<8x1xf32>
    }"""
    assert names(text) == []
    body = flatten(described(text), Compiler(keeps_reshapes=True)).body
    assert [flat.op.kind.name for flat in body.ops] == ["xla.bitcast"]
    assert body.results == (body.ops[0].op.results[0], body.arguments[0])


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
