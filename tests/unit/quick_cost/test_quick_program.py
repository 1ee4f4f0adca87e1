"""`QuickProgram`: what it refuses, what it keeps, and that it is quick."""

from __future__ import annotations

import time
from functools import cache

import pytest

import pyshardy
from pyshardy.core.notation import parse_sharding
from pyshardy.costing.counting import count_collectives
from pyshardy.errors import UsageError
from pyshardy.examples import transformer as example
from pyshardy.ir.cost_program import cost_program
from pyshardy.quick_cost.quick_program import QuickProgram, why_not

MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'
PRODUCT = """
func.func @main(%a: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>},
                %b: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<64x16xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>
  %1 = stablehlo.tanh %0 : tensor<64x16xf32>
  return %1 : tensor<64x16xf32>
}"""
SEVERAL = """
sdy.mesh @other = <["z"=8]>
func.func @main(%a: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>},
                %b: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@other, [{"z"}, {}]>}) -> tensor<32x16xf32> {
  return %b : tensor<32x16xf32>
}"""
UNREDUCED = """
func.func @main(%a: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x"}>}) -> tensor<64xf32> {
  %0 = sdy.reshard %a <@mesh, [{}]> : tensor<64xf32>
  return %0 : tensor<64xf32>
}"""
CALL = "func.func @f() { return } func.func @main() { func.call @f() : () -> () return }"


def collectives(program: object) -> list[tuple[str, int]]:
    return [(one.op.kind.name.removeprefix("stablehlo."), one.sent_bytes) for one in count_collectives(program)]  # type: ignore[arg-type]


def quick(text: str) -> QuickProgram:
    return QuickProgram(pyshardy.propagate(MESH + text).sharded)


@cache
def propagated(layers: int) -> pyshardy.Propagation:
    return pyshardy.propagate(pyshardy.load(example.lower(example.Config(layers=layers))))


@pytest.mark.parametrize(
    ("text", "reason"), [(SEVERAL, "several meshes"), (UNREDUCED, "unreduced"), (CALL, "several functions")]
)
def test_what_is_partitioned_as_a_whole_is_refused_with_a_reason(text: str, reason: str) -> None:
    found = pyshardy.propagate(MESH + text, view="stablehlo")
    assert reason in (why_not(found.sharded) or "")
    with pytest.raises(UsageError, match=f"from shardings alone: got .*{reason}"):
        QuickProgram(found.sharded)


@pytest.mark.parametrize("text", [SEVERAL, UNREDUCED])
def test_cost_falls_back_to_the_partitioner(text: str) -> None:
    program = pyshardy.propagate(MESH + text, view="stablehlo")
    found = pyshardy.cost(program, "h100", quick=True)
    assert found.partition is not None
    assert found.to_json() == pyshardy.cost(program, "h100").to_json()


def test_cost_without_the_program_of_one_device() -> None:
    program = pyshardy.propagate(MESH + PRODUCT)
    found = pyshardy.cost(program, "h100", quick=True)
    assert found.partition is None
    assert found.to_json() == pyshardy.cost(program, "h100").to_json()


def test_collectives_follow_the_shardings() -> None:
    program = quick(PRODUCT)
    assert collectives(program.cost_program()) == [("all_reduce", 3072)]
    shardings = program.skeleton.shardings()
    whole = [None if one is None else parse_sharding("<@mesh, [{}, {}]>") for one in shardings]
    last = program.skeleton.body.returned[0]
    whole[last] = shardings[last]  # what the function returns
    assert ("all_reduce", 3072) not in collectives(program.cost_program(whole))
    assert collectives(program.cost_program()) == [("all_reduce", 3072)]


def test_a_second_price_learns_nothing_new() -> None:
    program = QuickProgram(propagated(2).sharded)
    program.cost_program()
    known = dict(program.versions.known)
    program.cost_program()
    assert program.versions.known == known


def test_more_layers_are_no_more_kinds() -> None:
    counts = []
    for layers in (2, 4):
        program = QuickProgram(propagated(layers).sharded)
        program.cost_program()
        counts.append(len(program.versions.known))
    assert counts[1] - counts[0] < 8  # sums over all parameters alone


def test_it_takes_a_fraction_of_the_time() -> None:
    """Six times as fast on an idle machine; half of that is asked for."""
    found = propagated(4)
    program = QuickProgram(found.sharded)
    program.cost_program()
    quick_seconds, whole_seconds = [], []
    for _ in range(3):
        start = time.process_time()
        program.cost_program()
        middle = time.process_time()
        partition = pyshardy.partition(found)
        cost_program(partition.module.root, partition.meshes)
        quick_seconds.append(middle - start)
        whole_seconds.append(time.process_time() - middle)
    assert 3 * min(quick_seconds) < min(whole_seconds)
