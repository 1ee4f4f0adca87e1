"""Prices from a short version beside those of the whole program."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import pyshardy
from pyshardy.core.notation import parse_sharding
from pyshardy.costing.brief import brief_estimate
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.topology import make_topology
from pyshardy.errors import UsageError
from pyshardy.frontend.annotate import annotate_ports
from pyshardy.frontend.interface import input_tensors
from pyshardy.ir.cost_program import cost_program
from pyshardy.quick_cost.layered import LayeredCandidates

from ..autopartition.problems import HIDDEN, WIDTH, layered

MESH = {"data": 2, "model": 4}
TOPOLOGY = make_topology(find_hardware("h100"), tuple(MESH.items()))
WAYS = {
    "replicated": {},
    "data": {"x": '[{"data", "model"}, {}]'},
    "both": {"x": '[{"data"}, {}]', "'up'": '[{}, {"model"}]', "'down'": '[{"model"}, {}]'},
    "stored in parts": {"x": '[{"data", "model"}, {}]', "'up'": '[{}, {"data"}]', "'down'": '[{"model"}, {}]'},
}


def training_step(layers: int) -> pyshardy.Module:
    def loss(params, x):
        for w in params:
            x = x + jax.nn.gelu(x @ w["up"]) @ w["down"]
        return jnp.mean(x.astype(jnp.float32) ** 2)

    def step(params, x):
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params, x))

    up, down = jax.ShapeDtypeStruct((1024, 4096), "bfloat16"), jax.ShapeDtypeStruct((4096, 1024), "bfloat16")
    x = jax.ShapeDtypeStruct((8192, 1024), "bfloat16")
    params = [{"up": up, "down": down} for _ in range(layers)]
    return pyshardy.load(jax.jit(step, donate_argnums=0), params, x, mesh=MESH, platform="tpu")


def sharded(module: pyshardy.Module, way: dict[str, str]) -> dict[int, object]:
    return {
        port.index: parse_sharding(f"<@mesh, {text}>")
        for port in input_tensors(module.root)
        for name, text in way.items()
        if port.name == name or f"[{name}]" in port.name
    }


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("layers", [2, 12])
def test_prices_are_those_of_the_whole_program(way: str, layers: int) -> None:
    module = training_step(layers)
    prices = LayeredCandidates(module, "mesh", TOPOLOGY)
    assert prices.is_exact is (layers == 2)
    given = sharded(module, WAYS[way])
    found = prices.price(given, {})
    empty = sharded(module, {"x": "[{}, {}]", "'up'": "[{}, {}]", "'down'": "[{}, {}]"})
    ports = {port.index: port for port in input_tensors(module.root)}
    annotated = annotate_ports(module, [("arg_attrs", ports[at], one) for at, one in {**empty, **given}.items()])
    whole = pyshardy.cost(annotated, "h100")
    tolerance = 1e-9 if layers == 2 else 0.05
    assert found.seconds == pytest.approx(whole.step_seconds, rel=tolerance)
    assert found.bytes == pytest.approx(whole.peak_bytes, rel=tolerance / 5)


def test_layers_make_a_difference() -> None:
    few, many = (LayeredCandidates(pyshardy.load(layered(n)), "mesh", _topology()).price({}, {}) for n in (6, 12))
    assert many.seconds == pytest.approx(2 * few.seconds, rel=0.01)
    assert many.bytes - few.bytes == 6 * 2 * WIDTH * HIDDEN * 4


def _topology():
    return make_topology(find_hardware("h100"), (("data", 4), ("model", 2)))


def test_the_brief_estimate_is_the_estimate() -> None:
    module = training_step(3)
    part = pyshardy.partition(module)
    program = cost_program(part.module.root, part.meshes, "-")
    brief, whole = brief_estimate(program, TOPOLOGY), pyshardy.cost(part, "h100")
    assert (brief.seconds, brief.bytes) == (whole.step_seconds, whole.peak_bytes)


def test_a_program_on_several_meshes_is_refused() -> None:
    text = 'sdy.mesh @a = <["x"=2]>\nsdy.mesh @b = <["y"=2]>\nfunc.func @main(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }'
    with pytest.raises(UsageError, match="one mesh"):
        LayeredCandidates(pyshardy.load(text), "a", TOPOLOGY)
