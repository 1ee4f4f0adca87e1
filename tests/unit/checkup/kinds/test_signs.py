"""Weights whose largest dimension an axis does not divide."""

from __future__ import annotations

import pytest

import pyshardy
from pyshardy.checkup.kinds.signs import signs
from pyshardy.ir.shardings import module_meshes
from pyshardy.report.diagnosis import Figures, Finding, FindingKind


def found(rows: int, spec: str) -> list[Finding]:
    """The findings on a step that adds a table and another weight to themselves."""
    table, weight = f"tensor<{rows}x64xf32>", "tensor<64x64xf32>"
    arguments = f"""%0: {table} {{sdy.sharding = #sdy.sharding<@mesh, {spec}>, tf.aliasing_output = 0 : i32}} loc("params['table']"),
        %1: {weight} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"model"}}]>, tf.aliasing_output = 1 : i32}} loc("params['up']")"""
    results = f"""{table} {{jax.result_info = "result['table']"}}, {weight} {{jax.result_info = "result['up']"}}"""
    module = pyshardy.load(f"""
    sdy.mesh @mesh = <["data"=4, "model"=8]>
    func.func @main({arguments}) -> ({results}) {{
      %2 = stablehlo.add %0, %0 : {table}
      %3 = stablehlo.add %1, %1 : {weight}
      return %2, %3 : {table}, {weight}
    }}""")
    cost = pyshardy.cost(module, "h100")
    mesh = next(one for one in module_meshes(module.root).values() if one.axes)
    now = Figures(cost.step_seconds, cost.peak_bytes)
    return [one for _, one in signs(cost, now, mesh) if one.kind is FindingKind.UNEVEN]


def test_a_table_whose_rows_an_axis_does_not_divide() -> None:
    (one,) = found(1001, "[{}, {}]")
    assert "`params['table']` is whole along 'model'" in one.what and "dimension 0 of 1001" in one.what
    assert one.cure.startswith("pad the dimension to 1008, a multiple of 8")


@pytest.mark.parametrize(("rows", "spec"), [(1024, "[{}, {}]"), (1001, '[{}, {"model"}]'), (96, "[{}, {}]")])
def test_what_is_divided_split_or_small_is_no_finding(rows: int, spec: str) -> None:
    assert found(rows, spec) == []
