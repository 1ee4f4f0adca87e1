"""Maxima and minima over CPUs."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pyshardy
from pyshardy.ir.module import Module
from pyshardy.runtime.quirks import Programs, work_around
from pyshardy.runtime.stacked import stacked

INF, NAN = float("inf"), float("nan")
TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": jnp.bfloat16}
ROWS = [[1, -2, 0.0, INF], [3, -5, -0.0, NAN], [-1, -4, 2, 7], [NAN, -3, 1, -INF]]


def _over_devices(collective: str, name: str, element: str, result: str) -> str:
    """Every device has a row; what they make of all rows comes out of each."""
    on = '{sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}'
    return f"""
sdy.mesh @m = <["x"=4]>
func.func @main(%a: tensor<4x4x{element}> {on}) -> (tensor<{result}x{element}> {on}) {{
  %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{{"x"}}, {{}}]>] out_shardings=[<@m, [{{"x"}}, {{}}]>]
    manual_axes={{"x"}} (%b: tensor<1x4x{element}>) {{
    %1 = "stablehlo.{collective}"(%b) ({{
    ^bb0(%c: tensor<{element}>, %d: tensor<{element}>):
      %2 = stablehlo.{name} %c, %d : tensor<{element}>
      stablehlo.return %2 : tensor<{element}>
    }}) {{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids,
         channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>
         {", scatter_dimension = 1 : i64" if collective == "reduce_scatter" else ""}}}
      : (tensor<1x4x{element}>) -> tensor<1x{result[2:]}x{element}>
    sdy.return %1 : tensor<1x{result[2:]}x{element}>
  }} : (tensor<4x4x{element}>) -> tensor<{result}x{element}>
  return %0 : tensor<{result}x{element}>
}}"""


@pytest.mark.slow
@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("name", ["maximum", "minimum"])
@pytest.mark.parametrize(("collective", "result"), [("all_reduce", "4x4"), ("reduce_scatter", "4x1")])
def test_what_is_not_a_number_is_kept(collective: str, result: str, name: str, element: str) -> None:
    rows = np.array(ROWS).astype(TYPES[element])
    text = _over_devices(collective, name, element, result)
    (found,) = pyshardy.run(pyshardy.partition(pyshardy.load(text)), rows)
    whole: Any = getattr(np, name).reduce(rows.astype(np.float64), axis=0)
    expected = np.broadcast_to(whole, (4, 4)) if collective == "all_reduce" else whole.reshape(4, 1)
    np.testing.assert_array_equal(np.asarray(found).astype(np.float64), expected)
    assert np.isnan(expected).any() and np.isfinite(expected).any()


@pytest.mark.parametrize(("name", "element"), [("add", "f32"), ("maximum", "i32"), ("minimum", "f8E5M2")])
def test_other_collectives_stay(name: str, element: str) -> None:
    module = Module.parse(_over_devices("all_reduce", name, element, "4x4"))
    root = module.copy_root()
    with module.context:
        work_around(root, module, [Programs.ON_CPUS])
        assert module.with_root(root).text() == module.text()


def test_they_are_told_apart_on_cpus_only() -> None:
    partition = pyshardy.partition(pyshardy.load(_over_devices("all_reduce", "maximum", "f32", "4x4")))
    assert "bitcast_convert" in stacked(partition.module, 4, on_cpus=True).text()
    assert "bitcast_convert" not in stacked(partition.module, 4).text()
