"""Costs by scope and by line."""

from __future__ import annotations

import pytest

import pyshardy
from pyshardy.costing.places import By
from pyshardy.errors import UsageError
from pyshardy.report.cost import place_tables
from pyshardy.report.printing import plain_text

PROGRAM = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<512x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %b: tensor<256x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<512x512xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<5> : tensor<i32>
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<512x256xf32>, tensor<256x512xf32>) -> tensor<512x512xf32> loc("jit(f)/attention/dot_general"("f.py":3:4))
  %1:2 = stablehlo.while(%i = %zero, %x = %0) : tensor<i32>, tensor<512x512xf32> cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.tanh %x : tensor<512x512xf32> loc("jit(f)/mlp/while/body/tanh"("f.py":5:6))
    stablehlo.return %j, %y : tensor<i32>, tensor<512x512xf32>
  }
  return %1#1 : tensor<512x512xf32>
}"""


@pytest.fixture(scope="module")
def cost() -> pyshardy.Cost:
    return pyshardy.cost(PROGRAM, "v5e")


@pytest.mark.parametrize("by", ["scope", "line"])
def test_times_add_up_to_those_of_the_estimate(cost: pyshardy.Cost, by: str) -> None:
    rows, found = cost.by(by), cost.estimate
    assert sum(row.kernel_seconds for row in rows) == pytest.approx(found.compute_seconds)
    assert sum(row.collective_seconds for row in rows) == pytest.approx(found.communication_seconds)
    assert sum(row.flops for row in rows) == pytest.approx(found.flops_per_device)
    assert sum(row.bytes for row in rows) == pytest.approx(found.bytes_per_device)
    assert sum(row.sent_bytes for row in rows) == sum(row.sent_bytes_per_device for row in found.collectives) > 0
    assert sum(row.peak_bytes for row in rows) == found.memory.temporary_bytes > 0


def test_a_sum_belongs_to_the_scope_that_needs_it_and_a_loop_counts_its_rounds(cost: pyshardy.Cost) -> None:
    rows = {row.scope: row for row in cost.by("scope")}
    assert rows["attention"].collective_seconds > 0 and rows["mlp"].collective_seconds == 0
    assert rows["mlp"].bytes == 5 * 2 * 512 * 512 * 4
    assert rows["attention"].sent_bytes > 0 and rows["mlp"].sent_bytes == 0
    lines = {row.source: row for row in cost.by("line")}
    assert lines["f.py", 5, 0].kernel_seconds == rows["mlp"].kernel_seconds


def test_the_table(cost: pyshardy.Cost) -> None:
    text = plain_text(place_tables(By.LINE, cost.by("line")))
    assert text.startswith("time by line, without overlap (estimated)") and "f.py:5" in text


def test_another_word_is_refused(cost: pyshardy.Cost) -> None:
    with pytest.raises(UsageError, match="summing an estimate: got 'module', needed 'scope' or 'line'"):
        cost.by("module")


JOINED = """
sdy.mesh @mesh = <["x"=8]>
func.func @main(%x: tensor<512x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %y: tensor<512x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<256x256xf32>, tensor<256x64xf32>) {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0]
    : (tensor<512x256xf32>, tensor<512x256xf32>) -> tensor<256x256xf32> loc("jit(f)/attention/dot_general"("f.py":3:4))
  %1 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0]
    : (tensor<512x256xf32>, tensor<512x64xf32>) -> tensor<256x64xf32> loc("jit(f)/mlp/dot_general"("f.py":5:6))
  return %0, %1 : tensor<256x256xf32>, tensor<256x64xf32>
}"""


@pytest.mark.parametrize("chip", ["v5e", "h100"])
def test_a_joined_sum_belongs_to_the_lines_of_its_parts(chip: str) -> None:
    found = pyshardy.cost(JOINED, chip)
    rows = {row.source and row.source[1]: row for row in found.estimate.collectives}
    assert (rows[3].count, rows[5].count) == (1, 0) and rows[3].ops == ("jit(f)/attention/dot_general",)
    assert rows[3].sent_bytes_per_device == 4 * rows[5].sent_bytes_per_device == 2 * 7 * 256 * 256 * 4 // 8
    assert rows[3].seconds == pytest.approx(4 * rows[5].seconds)
    assert rows[3].seconds + rows[5].seconds == pytest.approx(found.estimate.communication_seconds)
    scopes = {row.scope: row for row in found.by("scope")}
    assert scopes["attention"].sent_bytes == rows[3].sent_bytes_per_device
    assert scopes["mlp"].collective_seconds == pytest.approx(rows[5].seconds) and rows[5].seconds > 0
    assert sum(row.flops for row in scopes.values()) == pytest.approx(found.estimate.flops_per_device)
