"""Prices of candidates are those of programs that are propagated and partitioned with their shardings."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyshardy
from programs import PROGRAMS
from pyshardy.core.axes import AxisRef
from pyshardy.core.notation import parse_sharding
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.step_cost import StepCost, step_cost
from pyshardy.costing.topology import Topology, make_topology
from pyshardy.errors import UsageError
from pyshardy.frontend.annotate import annotate_ports
from pyshardy.frontend.interface import input_tensors, output_tensors
from pyshardy.ir.cost_program import cost_program
from pyshardy.ir.module import Module
from pyshardy.searching.planning.candidates import LayeredCandidates
from pyshardy.searching.program.search_program import mesh_to_search
from support.steps import descent

from ..autopartition.problems import HIDDEN, WIDTH, layered

NAMES = ("mlp_training", "embedding_training", "cnn_training", "einsum_many_dims", "transformer_scan_remat", "uneven")
MESH = {"data": 2, "model": 4}
TOPOLOGY = make_topology(find_hardware("h100"), tuple(MESH.items()))
Shardings = dict[int, TensorSharding]


def topology_of(module: Module) -> Topology:
    return make_topology(find_hardware("h100"), mesh_to_search(module.root)[1].axes)


def prices_of(module: Module) -> LayeredCandidates:
    return LayeredCandidates(module, mesh_to_search(module.root)[0], topology_of(module))


def whole(module: Module, inputs: Shardings, outputs: Shardings | None = None) -> StepCost:
    """What the program costs that is partitioned with these shardings; other inputs have shardings without axes."""
    name, _ = mesh_to_search(module.root)
    ports = [port for port in input_tensors(module.root) if port.shape]
    given = [
        ("arg_attrs", port, inputs.get(port.index) or TensorSharding.fully_replicated(name, len(port.shape)))
        for port in ports
        if port.index in inputs or port.sharding is None
    ]
    ends = outputs or {}
    given += [("res_attrs", port, ends[port.index]) for port in output_tensors(module.root) if port.index in ends]
    found = pyshardy.cost(pyshardy.partition(annotate_ports(module, given), compiler=""), "h100")
    return StepCost(found.step_seconds, found.peak_bytes, found.estimate.communication_seconds)


def same(one: StepCost, other: StepCost, rel: float = 1e-9) -> bool:
    """Whether two prices are the same; sums of floating-point numbers may round otherwise."""
    return one.seconds == pytest.approx(other.seconds, rel=rel) and one.bytes == pytest.approx(other.bytes, rel=rel / 5)


def draw(module: Module, seed: str) -> Shardings:
    """Random shardings of some arguments, by index."""
    random, found = Random(seed), Shardings()
    name, mesh = mesh_to_search(module.root)
    for port in input_tensors(module.root):
        if port.shape and random.random() < 0.5:
            dims: list[list[AxisRef]] = [[] for _ in port.shape]
            for axis in mesh.axis_names:
                if random.random() < 0.6:
                    dims[random.randrange(len(dims))].append(AxisRef(axis))
            found[port.index] = TensorSharding(name, [DimSharding(axes) for axes in dims])
    return found


@pytest.mark.slow_but_for("uneven")
@pytest.mark.parametrize("name", NAMES)
def test_prices_are_those_of_partitioned_programs(name: str) -> None:
    module = pyshardy.load(PROGRAMS[name].lower())
    prices = prices_of(module)
    assert prices.is_whole
    found = []
    for seed in range(4):
        inputs = draw(module, f"{name} {seed}")
        found.append(prices.price(inputs, {}))
        assert same(found[-1], whole(module, inputs))
    assert len(set(found)) > 1  # they are different candidates


PRODUCT = """
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<64x128xf32>, %b: tensor<128x32xf32>) -> (tensor<64x32xf32>, tensor<64x128xf32>) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<64x128xf32>, tensor<128x32xf32>) -> tensor<64x32xf32>
  %1 = stablehlo.tanh %a : tensor<64x128xf32>
  return %0, %1 : tensor<64x32xf32>, tensor<64x128xf32>
}"""
SPECS = st.sampled_from(['{"x"}, {}', '{}, {"x"}', '{"y"}, {"x"}', '{"x", "y"}, {}', '{}, {"y", "x"}', "{}, {}"])


@given(st.dictionaries(st.integers(0, 1), SPECS), st.dictionaries(st.integers(0, 1), SPECS))
@settings(max_examples=25, deadline=None)
def test_shardings_of_inputs_and_outputs_are_priced(inputs: dict[int, str], outputs: dict[int, str]) -> None:
    """One object prices many candidates: what it keeps of one is not mixed up with another."""
    module, prices = _product()
    one, two = (
        {place: parse_sharding(f"<@mesh, [{spec}]>") for place, spec in specs.items()} for specs in (inputs, outputs)
    )
    assert same(prices.price(one, two), whole(module, one, two))


_KNOWN: list[tuple[Module, LayeredCandidates]] = []


def _product() -> tuple[Module, LayeredCandidates]:
    if not _KNOWN:
        module = pyshardy.load(PRODUCT)
        _KNOWN.append((module, prices_of(module)))
    return _KNOWN[0]


def test_the_price_with_another_sharding_is_another_one() -> None:
    module, prices = _product()
    rows, columns = (parse_sharding(f"<@mesh, [{text}]>") for text in ('{"x"}, {}', '{}, {"x"}'))
    assert same(prices.price({0: rows}, {}), whole(module, {0: rows}))
    assert not same(prices.price({0: rows}, {}), whole(module, {0: columns}))
    assert not same(prices.price({0: rows}, {}), whole(module, {0: rows}, {0: columns}))


MERGED = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<512x1024xf32>, %b: tensor<512x1024xf32>) -> (tensor<512x1024xf32>, tensor<512x1024xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<512x1024xf32>
  %1 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<512x1024xf32>
  %2 = stablehlo.maximum %a, %0 : tensor<512x1024xf32>
  %3 = stablehlo.maximum %b, %1 : tensor<512x1024xf32>
  return %2, %3 : tensor<512x1024xf32>, tensor<512x1024xf32>
}"""
TOPK = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x8xf32>) -> tensor<4x2xf32> {
  %0:2 = "mhlo.topk"(%a) {k = 2 : i64, largest = true} : (tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
  return %0#0 : tensor<4x2xf32>
}"""
ISLAND = """
sdy.mesh @mesh = <["data"=2, "model"=2]>
func.func @main(%x: tensor<4096x1024xf32>, %w: tensor<1024x4096xf32>) -> tensor<4096x4096xf32> {
  %0 = sdy.manual_computation(%x, %w) in_shardings=[<@mesh, [{?}, {?}]>, <@mesh, [{?}, {"model", ?}]>]
      out_shardings=[<@mesh, [{?}, {"model", ?}]>] manual_axes={"model"}
      (%a: tensor<4096x1024xf32>, %b: tensor<1024x2048xf32>) {
    %1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<4096x1024xf32>, tensor<1024x2048xf32>) -> tensor<4096x2048xf32>
    sdy.return %1 : tensor<4096x2048xf32>
  } : (tensor<4096x1024xf32>, tensor<1024x4096xf32>) -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}"""
CALLED_IN_LOOPS = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func private @double(%a: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = stablehlo.add %a, %a : tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
func.func @main(%a: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = func.call @double(%a) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = func.call @double(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}"""
SUM = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"x"}>},
                %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = sdy.all_reduce {"x"} %a out_sharding=<@mesh, [{}, {}]> : tensor<64x64xf32>
  %1 = stablehlo.add %0, %b : tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}"""
WAYS = ('{"x"}, {}', '{}, {"y"}', '{"x", "y"}, {}')


@pytest.mark.parametrize(
    ("text", "inputs", "outputs"),
    [
        (MERGED, {0: WAYS[0], 1: WAYS[0]}, {}),
        (MERGED, {0: WAYS[0], 1: WAYS[1]}, {}),
        (TOPK, {0: '{"x"}, {}'}, {0: "{}, {}"}),
        (ISLAND, {0: '{"data"}, {}'}, {}),
        (ISLAND.replace('"model"=2', '"model"=2, "one"=1').replace('"data"=2, ', ""), {0: '{"model"}, {}'}, {}),
        (CALLED_IN_LOOPS, {0: '{"x"}, {"y"}'}, {0: WAYS[1]}),
        (SUM, {1: '{"y"}, {}'}, {}),
    ],
    ids=["merged", "apart", "unused result", "free axes", "axis of size 1", "calls", "completed sum"],
)
def test_what_depends_on_shardings_is_priced(text: str, inputs: dict[int, str], outputs: dict[int, str]) -> None:
    module = pyshardy.load(text)
    one, two = (
        {place: parse_sharding(f"<@mesh, [{spec}]>") for place, spec in specs.items()} for specs in (inputs, outputs)
    )
    assert same(prices_of(module).price(one, two), whole(module, one, two))


def test_free_axes_of_an_island_are_searched() -> None:
    module = pyshardy.load(ISLAND)
    plan = pyshardy.search(module, hardware="v5e", candidates=40)
    sharded = pyshardy.cost(module.annotate({"arg0": pyshardy.PartitionSpec("data")}), "v5e")
    assert plan.step_seconds <= sharded.step_seconds < 0.7 * pyshardy.cost(module, "v5e").step_seconds


GROUP = """
sdy.mesh @a = <["x"=2]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  sdy.sharding_group %x group_id=0 : tensor<8xf32>
  return %x : tensor<8xf32>
}"""
NO_MESH = "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (NO_MESH, "got a program with no mesh or several"),
        (f'sdy.mesh @a = <["x"=2]>\nsdy.mesh @b = <["y"=2]>\n{NO_MESH}', "needed:? one mesh"),
        (GROUP, "got a program with sharding groups"),
    ],
)
def test_what_it_cannot_price_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=f"pricing candidates: .*({reason})"):
        LayeredCandidates(pyshardy.load(text), "a", TOPOLOGY)


# Layers

BY_LAYER = {
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

    up, down = jax.ShapeDtypeStruct((1024, 4096), "bfloat16"), jax.ShapeDtypeStruct((4096, 1024), "bfloat16")
    x = jax.ShapeDtypeStruct((8192, 1024), "bfloat16")
    params = [{"up": up, "down": down} for _ in range(layers)]
    return load_step(loss, params, x)


def by_name(module: pyshardy.Module, way: dict[str, str]) -> Shardings:
    return {
        port.index: parse_sharding(f"<@mesh, {text}>")
        for port in input_tensors(module.root)
        for name, text in way.items()
        if port.name == name or f"[{name}]" in port.name
    }


@pytest.mark.slow_but_for("2-replicated")
@pytest.mark.parametrize("way", BY_LAYER)
@pytest.mark.parametrize("layers", [2, 12])
def test_prices_of_layers_are_those_of_the_whole_program(way: str, layers: int) -> None:
    module = training_step(layers)
    prices = LayeredCandidates(module, "mesh", TOPOLOGY)
    assert prices.is_whole is (layers == 2)
    given = by_name(module, BY_LAYER[way])
    assert same(prices.price(given, {}), whole(module, given), 1e-9)


def test_layers_make_a_difference() -> None:
    few, many = (prices_of(pyshardy.load(layered(n))).price({}, {}) for n in (6, 12))
    assert many.seconds == pytest.approx(2 * few.seconds, rel=0.01)
    assert many.bytes - few.bytes == 6 * 2 * WIDTH * HIDDEN * 4


def test_the_brief_estimate_is_the_estimate() -> None:
    module = training_step(3)
    part = pyshardy.partition(module, compiler="")
    program = cost_program(part.module.root, part.meshes, "-")
    found = pyshardy.cost(part, "h100")
    assert step_cost(program, TOPOLOGY) == StepCost(
        found.step_seconds, found.peak_bytes, found.estimate.communication_seconds
    )


def test_layers_that_are_computed_again_cost_what_they_do_in_the_whole_program() -> None:
    """Their weights are converted first, which alone tells their backward passes apart."""
    layers = 7

    def block(x: jax.Array, layer: dict[str, jax.Array]) -> jax.Array:
        return x + jnp.tanh(x @ layer["up"]) @ layer["down"]

    def loss(params: list[dict[str, jax.Array]], x: jax.Array) -> jax.Array:
        small = jax.tree.map(lambda one: one.astype(jnp.bfloat16), params)
        for layer in small:
            x = jax.checkpoint(block)(x, layer)
        return (x.astype(jnp.float32) ** 2).mean()

    one = {"up": jax.ShapeDtypeStruct((512, 2048), "float32"), "down": jax.ShapeDtypeStruct((2048, 512), "float32")}
    module = pyshardy.load(descent(loss), [one] * layers, jax.ShapeDtypeStruct((4096, 512), "bfloat16"), mesh=MESH)
    spec = parse_sharding('<@mesh, [{"data"}, {}]>')
    inputs = dict.fromkeys(range(2 * layers + 1), spec)
    prices = prices_of(module)
    assert not prices.is_whole
    found, right = prices.price(inputs, {}), whole(module, inputs)
    assert same(found, right)


def equal_weights(layers: int) -> Module:
    """A step whose layers have four weights of one shape, which the optimizer updates one after the other."""

    def loss(params: list[dict[str, jax.Array]], x: jax.Array) -> jax.Array:
        for p in params:
            q, k, v = (x @ p[name] for name in ("wq", "wk", "wv"))
            x = x + (jax.nn.softmax(q @ k.swapaxes(1, 2)) @ v) @ p["wo"]
        return (x.astype(jnp.float32) ** 2).mean()

    weight = jax.ShapeDtypeStruct((512, 512), "bfloat16")
    params = [dict.fromkeys(("wq", "wk", "wv", "wo"), weight) for _ in range(layers)]
    return load_step(loss, params, jax.ShapeDtypeStruct((8, 512, 512), "bfloat16"))


def two_towers(layers: int) -> Module:
    """A step of two models whose layers are alike, so that the updates of both are one stretch."""

    def tower(weights: list[list[jax.Array]], x: jax.Array) -> jax.Array:
        for up, down in weights:
            x = x + jax.nn.gelu(x @ up) @ down
        return x / jnp.linalg.norm(x, axis=-1, keepdims=True)

    def loss(params: dict[str, list[list[jax.Array]]], images: jax.Array, texts: jax.Array) -> jax.Array:
        product = tower(params["image"], images) @ tower(params["text"], texts).T
        return jax.nn.logsumexp(product.astype(jnp.float32), axis=-1).mean()

    pair = [jax.ShapeDtypeStruct((512, 2048), "bfloat16"), jax.ShapeDtypeStruct((2048, 512), "bfloat16")]
    rows = jax.ShapeDtypeStruct((2048, 512), "bfloat16")
    return load_step(loss, {"image": [pair] * layers, "text": [pair] * layers}, rows, rows)


def backward_alone(layers: int) -> Module:
    """A step whose backward pass repeats once less often than its forward pass, as its first layer differs."""

    def loss(params: list[list[jax.Array]], x: jax.Array) -> jax.Array:
        for up, down in params:
            x = x + jax.nn.gelu(x @ up) @ down
        return (x.astype(jnp.float32) ** 2).mean()

    pair = [jax.ShapeDtypeStruct((512, 2048), "bfloat16"), jax.ShapeDtypeStruct((2048, 512), "bfloat16")]
    return load_step(loss, [pair] * layers, jax.ShapeDtypeStruct((4096, 512), "bfloat16"))


def load_step(loss: Callable[..., jax.Array], params: Any, *batch: jax.ShapeDtypeStruct) -> Module:
    return pyshardy.load(jax.jit(descent(loss), donate_argnums=0), params, *batch, mesh=MESH, platform="tpu")


@pytest.mark.parametrize(
    "make, layers, all_stay",
    [(equal_weights, 3, True), (equal_weights, 8, False), (two_towers, 8, False), (backward_alone, 4, True)],
)
def test_no_work_is_lost_with_the_layers_that_are_left_out(
    make: Callable[[int], Module], layers: int, all_stay: bool
) -> None:
    module = make(layers)
    prices = prices_of(module)
    assert prices.is_whole is all_stay
    spec = parse_sharding('<@mesh, [{"data"}, {}]>')
    inputs = {port.index: spec for port in input_tensors(module.root) if len(port.shape) == 2}
    found, right = prices.price(inputs, {}), whole(module, inputs)
    assert found.seconds == pytest.approx(right.seconds, rel=0.05)
    assert found.bytes == pytest.approx(right.bytes, rel=0.05)
