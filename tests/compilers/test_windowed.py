"""Products that XLA for TPUs cuts into parts which travel are named as what they are."""

from __future__ import annotations

import pytest

import pyshardy
from pyshardy.compilers.plugins import is_installed

ROWS, COLUMNS = '[{"data"}, {}]', '[{}, {"data"}]'


def program(x: str, w: str, kind: str = "tensor<8192x8192xbf16>") -> str:
    def given(sharding: str) -> str:
        return f"{{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}"

    return f"""
    sdy.mesh @mesh = <["data"=8]>
    func.func @main(%x: {kind} {given(x)} loc("x"), %w: {kind} {given(w)} loc("w")) -> ({kind} {given(ROWS)}) {{
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({kind}, {kind}) -> {kind} loc("jit(f)/dot_general"("m.py":3:4))
      return %0 : {kind}
    }}"""


@pytest.mark.parametrize(("x", "w", "windowed"), [(ROWS, COLUMNS, "all_gather"), (COLUMNS, ROWS, "reduce_scatter")])
def test_a_windowed_product(x: str, w: str, windowed: str) -> None:
    if not is_installed("tpu"):
        pytest.skip("the compiler for TPUs is not installed beside this Python")
    found = pyshardy.partition(program(x, w), compiler="tpu:v5e")
    rows = found.traffic.collectives
    assert {(row.kind, row.windowed) for row in rows} == {("collective_permute", windowed)}
    (story,) = found.collectives
    assert story.windowed == windowed
    whole = windowed.replace("_", "-")
    assert f"in a windowed product (its {whole} travels in parts during the product): `" in str(story)
    (cost,) = pyshardy.cost(found).estimate.collectives
    assert (cost.cause, cost.count) == (f"windowed {windowed} of dot_general", sum(row.times for row in rows))


def test_a_small_product_is_not_windowed() -> None:
    if not is_installed("tpu"):
        pytest.skip("the compiler for TPUs is not installed beside this Python")
    rows = pyshardy.partition(program(ROWS, COLUMNS, "tensor<64x64xbf16>"), compiler="tpu:v5e").traffic.collectives
    assert [(row.kind, row.windowed, row.cause) for row in rows] == [("all_gather", None, "dot_general")]


def test_the_rounds_of_windowed_products_are_counted_in_the_compiled_program() -> None:
    """The text of the compiled program does not say how often its loops run."""
    if not is_installed("tpu"):
        pytest.skip("the compiler for TPUs is not installed beside this Python")
    found = pyshardy.confirm(program(ROWS, COLUMNS), "tpu:v5e")
    (row,) = found.rows
    assert row.compiled == row.estimated and (row.kind, row.axes, row.holds) == ("collective_permute", "data", True)
    assert row.compiled is not None and not row.compiled.is_lower_bound
