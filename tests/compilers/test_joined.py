"""The collectives of an estimate are those that XLA for GPUs and TPUs compiles: as many, of as many bytes."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

import pyshardy
from pyshardy.compilers.plugins import is_installed
from pyshardy.report.confirmation import CollectivesCheck

MATRIX = "tensor<2048x2048x{}>"
ROWS, COLUMNS, WHOLE = '[{"data"}, {}]', '[{}, {"data"}]', "[{}, {}]"


def program(layers: int, dtype: str, narrow: str = "") -> str:
    """Layers whose weights are gathered, each behind the one before, and gradients of the weights that are scattered."""
    type, other = MATRIX.format(dtype), MATRIX.format(narrow or dtype)

    def given(sharding: str) -> str:
        return f"{{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}"

    body, results = [], []
    for at in range(layers):
        body += [
            f"%g{at} = sdy.sharding_constraint %w{at} <@mesh, {WHOLE}> : {type}",
            f"%n{at} = stablehlo.convert %g{at} : ({type}) -> {other}",
            f"%x{at + 1} = stablehlo.dot_general %x{at}, %n{at}, contracting_dims = [1] x [0] : ({other}, {other}) -> {other}",
            f"%d{at} = stablehlo.dot_general %x{at}, %x{at + 1}, contracting_dims = [0] x [0] : ({other}, {other}) -> {other}",
        ]
        results.append(f"%d{at}")
    inputs = ", ".join(f"%w{at}: {type} {given(ROWS)}" for at in range(layers))
    outputs = ", ".join(f"{other} {given(ROWS)}" for _ in range(layers))
    text, types = "\n".join(body), ", ".join([other] * layers)
    return f"""
    sdy.mesh @mesh = <["data"=8]>
    func.func @main(%x0: {other} {given(ROWS)}, {inputs}) -> ({outputs}) {{
      {text}
      return {", ".join(results)} : {types}
    }}"""


def assert_equal(rows: Iterable[CollectivesCheck]) -> None:
    for row in rows:
        assert row.estimated == row.compiled, f"{row.kind} along {row.axes}"


@pytest.mark.parametrize(
    "given",
    [program(12, "f32"), program(20, "bf16"), program(6, "f32", narrow="bf16")],
    ids=["f32", "bf16", "converted after it is gathered"],
)
def test_counts_and_bytes_are_those_of_the_compiler(given: str) -> None:
    if not is_installed("cuda"):
        pytest.skip("the compiler for GPUs is not installed beside this Python")
    found = pyshardy.confirm(given, "cuda:h100:8")
    assert {row.kind for row in found.rows} == {"all_gather", "reduce_scatter"}
    assert all(row.estimated is not None and row.estimated.count > 1 for row in found.rows[:1])
    assert_equal(found.rows)


def summed(count: int, rows: int) -> str:
    """Products that sum over a sharded dimension, so that each result is summed over devices."""
    whole = "{sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}"
    inputs, body = [], []
    for at in range(count):
        for name, width in (("a", rows), ("b", 1024)):
            inputs.append(f"%{name}{at}: tensor<64x{width}xf32> {{sdy.sharding = #sdy.sharding<@mesh, {ROWS}>}}")
        body.append(
            f"%d{at} = stablehlo.dot_general %a{at}, %b{at}, contracting_dims = [0] x [0]"
            f" : (tensor<64x{rows}xf32>, tensor<64x1024xf32>) -> tensor<{rows}x1024xf32>"
        )
    results, types = ", ".join(f"%d{at}" for at in range(count)), ", ".join([f"tensor<{rows}x1024xf32>"] * count)
    outputs = ", ".join([f"tensor<{rows}x1024xf32> {whole}"] * count)
    lines = "\n".join(body)
    return f"""
    sdy.mesh @mesh = <["data"=8]>
    func.func @main({", ".join(inputs)}) -> ({outputs}) {{
      {lines}
      return {results} : {types}
    }}"""


@pytest.mark.parametrize(("count", "rows", "groups"), [(50, 1024, 2), (12, 4096, 2), (31, 256, 1)])
def test_tpus_join_sums_up_to_a_limit(count: int, rows: int, groups: int) -> None:
    if not is_installed("tpu"):
        pytest.skip("the compiler for TPUs is not installed beside this Python")
    found = pyshardy.confirm(summed(count, rows), "tpu:v5e:2x4")
    (row,) = found.rows
    assert row.compiled is not None and row.compiled.count == groups
    assert_equal(found.rows)


def test_sums_that_a_loop_adds_up_follow_it() -> None:
    if not is_installed("cuda"):
        pytest.skip("the compiler for GPUs is not installed beside this Python")
    text = """
    sdy.mesh @mesh = <["data"=8]>
    func.func @main(%x: tensor<16x1024x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}, {}]>})
        -> (tensor<256x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %start = stablehlo.constant dense<0.0> : tensor<256x256xf32>
      %r:2 = stablehlo.while(%i = %zero, %total = %start) : tensor<i32>, tensor<256x256xf32>
      cond {
        %n = stablehlo.constant dense<16> : tensor<i32>
        %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %one = stablehlo.constant dense<1> : tensor<i32>
        %s = stablehlo.dynamic_slice %x, %i, %zero, %zero, sizes = [1, 1024, 256]
          : (tensor<16x1024x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1024x256xf32>
        %m = stablehlo.reshape %s : (tensor<1x1024x256xf32>) -> tensor<1024x256xf32>
        %d = stablehlo.dot_general %m, %m, contracting_dims = [0] x [0]
          : (tensor<1024x256xf32>, tensor<1024x256xf32>) -> tensor<256x256xf32>
        %new = stablehlo.add %total, %d : tensor<256x256xf32>
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %new : tensor<i32>, tensor<256x256xf32>
      }
      return %r#1 : tensor<256x256xf32>
    }"""
    found = pyshardy.confirm(text, "cuda:h100:8")
    (row,) = found.rows
    assert row.kind == "all_reduce" and row.compiled is not None and row.compiled.count == 1
    assert_equal(found.rows)


def test_the_comparison_can_fail() -> None:
    rows = [CollectivesCheck("all_gather", "data", None, None)]
    assert_equal(rows)
    total = pyshardy.cost(program(2, "f32"), "h100").estimate.collectives[0]
    with pytest.raises(AssertionError, match="all_gather along data"):
        assert_equal([CollectivesCheck("all_gather", "data", None, total)])  # type: ignore[arg-type]
