"""`doctor` names inputs that are kept in f32 and read as bf16 alone, and says what that costs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.checkup.kinds.precision import too_exact
from pyshardy.checkup.kinds.signs import signs
from pyshardy.report.diagnosis import Figures, FindingKind

S = jax.ShapeDtypeStruct
PARAMS = {"layers": S((4, 512, 512), "float32"), "out": S((512, 1024), "float32"), "scale": S((1024,), "float32")}
SPECS = {"layers": P(None, None, "model"), "out": P(None, "model"), "scale": P()}
X = S((64, 512), "bfloat16")
NARROW = jnp.bfloat16


def serve(params: Any, x: Any) -> Any:
    def layer(x: Any, w: Any) -> tuple[Any, None]:
        return jnp.tanh(x @ w.astype(NARROW)), None

    x, _ = jax.lax.scan(layer, x, params["layers"])
    y = x @ params["out"].astype(NARROW)
    return (y * params["scale"]).astype(NARROW)


def train(params: Any, x: Any) -> Any:
    grads = jax.grad(lambda params: serve(params, x).astype(jnp.float32).mean())(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def reads_one_exactly(params: Any, x: Any) -> Any:
    return serve(params, x), jnp.sum(params["out"])


def loaded(step: Any) -> pyshardy.Module:
    return pyshardy.load(step, PARAMS, X, mesh={"data": 4, "model": 2}, in_shardings=(SPECS, P("data")))


def test_the_finding_says_what_bf16_saves() -> None:
    cost = pyshardy.cost(loaded(serve), "h100")
    now = Figures(cost.step_seconds, cost.peak_bytes)
    (mesh,) = (mesh for mesh in cost.partition.meshes.values() if mesh.axes)
    ((share, found),) = (one for one in signs(cost, now, mesh) if one[1].kind is FindingKind.PRECISION)
    saved = (4 * 512 * 512 + 512 * 1024) * 4 // 2 // 2  # on two devices along "model", half of the bytes
    assert saved == 1.5 * 2**20 and share == saved / cost.peak_bytes
    assert found.what == "`params['layers']` and 1 more are kept in f32, and read as bf16 alone"
    assert "saves 1.5 MiB per device" in found.cure and found.after is None and found.place is None


def test_it_is_among_the_findings_of_doctor() -> None:
    found = pyshardy.doctor(loaded(serve), hardware="h100")
    assert "precision" in [one.kind.value for one in found.findings]
    assert all(len(list(found.tables().lines(width))) <= 24 for width in (80, 200))


@pytest.mark.parametrize(("step", "names"), [
    (serve, ["params['layers']", "params['out']"]),
    (reads_one_exactly, ["params['layers']"]),
    (train, []),
    (jax.grad(lambda params, x: serve(params, x).astype(jnp.float32).mean()), []),
])  # fmt: skip
def test_inputs_that_something_reads_exactly_or_an_output_replaces_are_none(step: Any, names: list[str]) -> None:
    assert [row.name for row in too_exact(pyshardy.propagate(loaded(step)))] == names


@pytest.mark.parametrize(("body", "count"), [
    ("%1 = call @move(%w) : (tensor<8x8xf32>) -> tensor<8x8xf32>", 1),
    ("%1 = stablehlo.optimization_barrier %w : tensor<8x8xf32>", 1),
    ("%1 = sdy.sharding_constraint %w <@mesh, [{\"x\"}, {}]> : tensor<8x8xf32>", 1),
    ("%1 = stablehlo.tanh %w : tensor<8x8xf32>", 0),
    ("%1 = call @grow(%w) : (tensor<8x8xf32>) -> tensor<8x8xf32>", 0),
    ("%1 = call @move(%w) : (tensor<8x8xf32>) -> tensor<8x8xf32>\n  %9 = stablehlo.abs %1 : tensor<8x8xf32>", 0),
])  # fmt: skip
def test_values_are_followed_through_what_moves_them(body: str, count: int) -> None:
    text = f"""
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%w: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> tensor<8x8xbf16> {{
      {body}
      %2 = stablehlo.convert %1 : (tensor<8x8xf32>) -> tensor<8x8xbf16>
      return %2 : tensor<8x8xbf16>
    }}
    func.func private @move(%w: tensor<8x8xf32>) -> tensor<8x8xf32> {{
      %0 = stablehlo.transpose %w, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
      return %0 : tensor<8x8xf32>
    }}
    func.func private @grow(%w: tensor<8x8xf32>) -> tensor<8x8xf32> {{
      %0 = stablehlo.add %w, %w : tensor<8x8xf32>
      return %0 : tensor<8x8xf32>
    }}"""
    assert len(too_exact(pyshardy.propagate(text))) == count
