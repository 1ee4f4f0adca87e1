"""Categories of arguments, by how a program uses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.costing.arguments import argument_categories, argument_category
from pyshardy.costing.flatten import flatten
from pyshardy.costing.program import CostInput

from .build import described

ARGUMENTS = ("parameters", "optimizer state", "cache", "other arguments")


def f32(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, np.float32)


WEIGHTS = {"a": f32(64, 64), "z": f32(64, 64)}


def categories(function: Callable[..., Any], *args: Any, **options: Any) -> dict[str, str]:
    """The category of every argument of a function, as the memory of its cost has it."""
    cost = pyshardy.cost(pyshardy.load(function, *args, mesh={"data": 2, "model": 2}, **options), "h100")
    memory = cost.estimate.memory
    assert dict(memory.categories) == {
        category: total
        for category in dict(memory.categories)
        if (total := sum(one.bytes for one in memory.live if one.category == category))
    }
    return {one.name: one.category for one in memory.live if one.source is None and one.category in ARGUMENTS}


@pytest.mark.parametrize("donated", [(), (1,)], ids=["kept", "donated"])
def test_a_cache_is_written_in_part(donated: tuple[int, ...]) -> None:
    def decode(params: Any, cache: Any, x: jax.Array) -> Any:
        return x @ params["w"], {"k": cache["k"].at[0].set(x), "v": cache["v"].at[0].set(x)}

    cache = {"k": f32(64, 32, 128), "v": f32(64, 32, 128)}
    found = categories(decode, {"w": f32(128, 128)}, cache, f32(32, 128), donate_argnums=donated)
    assert found == {"params['w']": "parameters", "cache['k']": "cache", "cache['v']": "cache", "x": "other arguments"}


@pytest.mark.parametrize("specs", [(None, None), (P(None, "data", None, "model"), P(None, "data", "model"))])
def test_a_cache_of_all_layers_in_a_scan(specs: tuple[P | None, P | None]) -> None:
    def decode(params: Any, state: Any, x: jax.Array, at: jax.Array) -> Any:
        def layer(x: jax.Array, one: Any) -> Any:
            w, k, v = one
            k = jax.lax.dynamic_update_slice(k, (x @ w)[:, None], (0, at, 0))
            v = jax.lax.dynamic_update_slice(v, (x @ w)[:, None], (0, at, 0))
            scores = jax.nn.softmax(jnp.einsum("bd,bsd->bs", x, k))
            return x + jnp.einsum("bs,bsd->bd", scores, v), (k, v)

        x, (k, v) = jax.lax.scan(layer, x, (params, state["m"], state["v"]))
        return x, {"m": k, "v": v}

    state = {"m": f32(4, 8, 32, 64), "v": f32(4, 8, 32, 64)}
    arguments = (f32(4, 64, 64), state, f32(8, 64), jax.ShapeDtypeStruct((), np.int32))
    found = categories(decode, *arguments, in_shardings=(None, dict(zip("mv", specs)), None, None))
    assert (found["params"], found["state['m']"], found["state['v']"]) == ("parameters", "cache", "cache")
    assert (found["x"], found["at"]) == ("other arguments", "other arguments")


def test_a_state_that_a_step_without_gradients_carries_is_no_optimizer() -> None:
    def step(w: jax.Array, state: Any, x: jax.Array) -> Any:
        h = state["h"] * 0.9 + x @ w
        return h @ w.T, {"h": h}

    found = categories(step, f32(64, 64), {"h": f32(8, 64)}, f32(8, 64))
    assert found == {"w": "parameters", "state['h']": "cache", "x": "other arguments"}


def test_the_values_of_attention_are_no_optimizer() -> None:
    def attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return jax.nn.softmax(q @ k.T) @ v

    found = categories(attend, *[f32(64, 64)] * 3)
    assert found == dict.fromkeys("qkv", "other arguments")


def loss(params: Any, x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.tanh(x @ params["a"]) @ params["z"])


def test_adam_without_names() -> None:
    def step(held: Any, x: jax.Array) -> Any:
        weights, first, second = held
        gradient = jax.grad(loss)(weights, x)
        first = jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, first, gradient)
        second = jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new * new, second, gradient)
        weights = jax.tree.map(lambda w, m, v: w - m / (jnp.sqrt(v) + 1e-3), weights, first, second)
        return weights, first, second

    found = categories(step, (WEIGHTS, WEIGHTS, WEIGHTS), f32(8, 64))
    assert found == {
        **{f"held[0]['{key}']": "parameters" for key in "az"},
        **{f"held[{place}]['{key}']": "optimizer state" for place in (1, 2) for key in "az"},
        "x": "other arguments",
    }


def test_what_training_carries_beside_weights() -> None:
    def step(p: Any, h: jax.Array, stats: jax.Array, mean: jax.Array, x: jax.Array) -> Any:
        def run(p: Any, h: jax.Array) -> Any:
            y = (x - mean) @ p["a"]
            h = 0.5 * h + 0.5 * jnp.tanh(y + h @ p["z"])
            return jnp.sum(h * h), (h, y.mean(0))

        (_, (h, now)), gradient = jax.value_and_grad(run, has_aux=True)(p, h)
        return jax.tree.map(lambda w, g: w - g, p, gradient), h, stats * 0.9 + 0.1 * now

    found = categories(step, WEIGHTS, f32(8, 64), f32(64), f32(64), f32(8, 64))
    others = dict.fromkeys(("h", "stats", "mean", "x"), "other arguments")
    assert found == {"p['a']": "parameters", "p['z']": "parameters", **others}


def test_weights_that_training_writes_in_part_stay_weights() -> None:
    def step(params: jax.Array, x: jax.Array) -> jax.Array:
        gradient = jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w)))(params[:, :8])
        return jax.lax.dynamic_update_slice(params, params[:, :8] - gradient, (0, 0))

    assert categories(step, f32(64, 64), f32(8, 64))["params"] == "parameters"


def test_an_optimizer_by_itself_keeps_its_names() -> None:
    def update(opt_state: Any, gradient: jax.Array, at: jax.Array) -> Any:
        return {"memory": jax.lax.dynamic_update_slice(opt_state["memory"], gradient[None], (at, 0))}

    arguments = {"memory": f32(10, 64)}, f32(64), jax.ShapeDtypeStruct((), np.int32)
    assert categories(update, *arguments)["opt_state['memory']"] == "optimizer state"


@pytest.mark.parametrize(
    ("update", "category"),
    [("tensor<2x8xf32>", "cache"), ("tensor<8x8xf32>", "other arguments")],
    ids=["a part", "all of it"],
)
def test_what_is_replaced_is_not_written_in_part(update: str, category: str) -> None:
    text = f"""func.func @main(%a: tensor<8x8xf32>, %u: {update}, %i: tensor<i32>) -> tensor<8x8xf32> {{
      %0 = stablehlo.dynamic_update_slice %a, %u, %i, %i
          : (tensor<8x8xf32>, {update}, tensor<i32>, tensor<i32>) -> tensor<8x8xf32>
      return %0 : tensor<8x8xf32>
    }}"""
    assert argument_categories([CostInput("x")] * 3, flatten(described(text))) == [category, *["other arguments"] * 2]


@pytest.mark.parametrize("take", ["%0, %a", "%a, %0"])
def test_branches_join(take: str) -> None:
    text = f"""func.func @main(%a: tensor<8xf32>, %u: tensor<2xf32>, %i: tensor<i32>) -> tensor<8xf32> {{
      %0 = stablehlo.dynamic_update_slice %a, %u, %i : (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>
      %1 = "stablehlo.case"(%i) ({{
        stablehlo.return {take.split(", ")[0]} : tensor<8xf32>
      }}, {{
        stablehlo.return {take.split(", ")[1]} : tensor<8xf32>
      }}) : (tensor<i32>) -> tensor<8xf32>
      return %1 : tensor<8xf32>
    }}"""
    assert argument_categories([CostInput("x")] * 3, flatten(described(text)))[0] == "cache"


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("cache['k']", "cache"),
        ("variables['cache']['layer_0']['cached_key']", "cache"),
        ("kv_cache[0]", "cache"),
        ("state.kv[3]", "cache"),
        ("cachet", "other arguments"),
    ],
)
def test_names_of_caches(name: str, category: str) -> None:
    assert argument_category(name) == category
