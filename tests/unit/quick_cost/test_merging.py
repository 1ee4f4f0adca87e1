"""Equal constants and broadcasts are one where they are sharded alike; what nobody uses is not sent."""

from __future__ import annotations

import pyshardy
from pyshardy.core.notation import parse_sharding
from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.counting import count_collectives
from pyshardy.ir.cost_program import cost_program
from pyshardy.quick_cost.candidates import Candidates

TEXT = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
  %1 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
  %2 = stablehlo.maximum %a, %0 : tensor<4x8xf32>
  %3 = stablehlo.maximum %b, %1 : tensor<4x8xf32>
  return %2, %3 : tensor<4x8xf32>, tensor<4x8xf32>
}"""
TOPK = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x8xf32>) -> tensor<4x2xf32> {
  %0:2 = "mhlo.topk"(%a) {k = 2 : i64, largest = true} : (tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
  return %0#0 : tensor<4x2xf32>
}"""


def broadcasts(*texts: str) -> int:
    """How many broadcasts there are when the arguments are sharded so."""
    candidates = Candidates(pyshardy.load(TEXT))
    given: dict[int, TensorSharding | None] = dict(zip(candidates.inputs, map(parse_sharding, texts)))
    program = candidates.price(candidates.propagated(given))
    return sum(op.kind.name == "stablehlo.broadcast_in_dim" for op in program.functions[0].ops)


def test_broadcasts_are_one_where_they_are_sharded_alike() -> None:
    rows, columns = '<@mesh, [{"x"}, {}]>', '<@mesh, [{}, {"y"}]>'
    assert broadcasts(rows, rows) == 1
    assert broadcasts(rows, columns) == 2
    assert broadcasts(columns, columns) == 1


def test_the_program_itself_does_not_change() -> None:
    candidates = Candidates(pyshardy.load(TEXT))
    before = [(entry.operands, entry.results) for entry in candidates.entries]
    candidates.price(candidates.propagated({}))
    assert [(entry.operands, entry.results) for entry in candidates.entries] == before
    assert sum(entry.op.name == "stablehlo.broadcast_in_dim" for entry in candidates.entries) == 2


def test_what_nobody_uses_is_not_sent() -> None:
    module = pyshardy.load(TOPK)
    candidates = Candidates(module)
    given: dict[int, TensorSharding | None] = {
        candidates.inputs[0]: parse_sharding('<@mesh, [{"x"}, {}]>'),
        candidates.outputs[0]: parse_sharding("<@mesh, [{}, {}]>"),
    }
    found = count_collectives(candidates.price(candidates.propagated(given)))
    named = {"arg0": pyshardy.PartitionSpec("x", None), "result": pyshardy.PartitionSpec(None, None)}
    part = pyshardy.partition(pyshardy.annotate(module, named))
    wanted = count_collectives(cost_program(part.module.root, part.meshes, "-"))
    assert [one.op.kind.name for one in found] == [one.op.kind.name for one in wanted] == ["stablehlo.all_gather"]
