"""The collectives of an estimate are those that XLA for GPUs compiles: as many, of as many bytes."""

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


def test_the_comparison_can_fail() -> None:
    rows = [CollectivesCheck("all_gather", "data", None, None)]
    assert_equal(rows)
    total = pyshardy.cost(program(2, "f32"), "h100").estimate.collectives[0]
    with pytest.raises(AssertionError, match="all_gather along data"):
        assert_equal([CollectivesCheck("all_gather", "data", None, total)])  # type: ignore[arg-type]
