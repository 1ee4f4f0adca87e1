"""From the arguments of a function to the inputs of its module, and back: `run` takes and returns its own trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.errors import UsageError
from pyshardy.frontend.jax_calls import inputs_of_call
from support.reference import jaxlib_version

NEWEST = jaxlib_version() >= (0, 12)
MESH = {"data": 4, "model": 2}
X, W = np.arange(128, dtype=np.float32).reshape(8, 16) / 64, np.ones((16, 8), np.float32)


@partial(jax.tree_util.register_dataclass, data_fields=["w", "b"], meta_fields=["name"])
@dataclass
class Params:
    w: Any
    b: Any
    name: str = "layer"


class Pair(NamedTuple):
    first: Any
    second: Any


def step(params: Params, extra: Any, x: Any, count: int, *, scale: Any, mode: str = "plain") -> Any:
    y = jnp.tanh(x @ params.w) * scale
    for _ in range(count):
        y = y + (1 if mode == "plain" else 2)
    key = jax.random.split(extra["key"])[0]
    return Pair({"y": y, "none": None}, [Params(params.w * 2, None), (key, ())])


ARGS = Params(W, None), {"unused": np.ones(3), "key": jax.random.key(1)}, X, 2
KEYWORDS = {"scale": 3.0, "mode": "double"}
STATIC = {"static_argnums": 3, "static_argnames": "mode"}
SHARDINGS = Params(P(None, "model"), None), None, P("data")


def same(found: Any, expected: Any) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert one.dtype == other.dtype
        is_key = jnp.issubdtype(one.dtype, jax.dtypes.prng_key)
        values = map(jax.random.key_data, (one, other)) if is_key else (one, other)
        np.testing.assert_allclose(*values, rtol=1e-5)


def module() -> pyshardy.Module:
    return pyshardy.load(step, *ARGS, **KEYWORDS, **STATIC, mesh=MESH, in_shardings=SHARDINGS)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "xla", *(["interpreter"] if NEWEST else [])])
@pytest.mark.parametrize("make", [pyshardy.propagate, pyshardy.partition])
def test_a_result_takes_and_returns_the_trees_of_the_function(make: Callable[..., Any], engine: str) -> None:
    expected = step(*ARGS, **KEYWORDS)
    result = make(module())
    same(result.run(*ARGS, **KEYWORDS, engine=engine), expected)
    same(pyshardy.run(result, *ARGS, **KEYWORDS, engine=engine), expected)
    with pytest.raises(AssertionError):
        same(result.run(*ARGS, scale=2.0, engine=engine), expected)


def test_static_arguments_are_found_between_others() -> None:
    def power(count: int, x: Any, mode: str, y: Any) -> Any:
        return x**count + (y if mode == "add" else -y)

    jitted = jax.jit(power, static_argnums=(0, 2))
    args = 2, X, "add", X
    for program in (pyshardy.load(jitted, *args), pyshardy.load(power, *args, static_argnums=(0, 2))):
        partition = pyshardy.partition(program)
        same(partition.run(*args), power(*args))
        same(partition.run(X, X), power(*args))
        for wrong in ((3, X, "add", X), (2, X, "subtract", X), (X, X, "add", X), (2, X, "add")):
            with pytest.raises(UsageError):
                partition.run(*wrong)


@pytest.mark.slow
def test_static_arguments_may_be_left_out() -> None:
    same(pyshardy.partition(module()).run(*ARGS[:3], scale=3.0), step(*ARGS, **KEYWORDS))


@pytest.mark.parametrize("wrap", [lambda step: step, lambda step: jax.jit(step, **STATIC)])
def test_a_function_is_loaded_with_what_load_takes(wrap: Callable[..., Any]) -> None:
    options = {**STATIC, "mesh": MESH, "in_shardings": SHARDINGS} if wrap(step) is step else {"mesh": MESH}
    same(pyshardy.run(wrap(step), *ARGS, **KEYWORDS, **options), step(*ARGS, **KEYWORDS))


def test_inputs_one_by_one_give_outputs_one_by_one() -> None:
    partition = pyshardy.partition(module())
    flat = [W, jax.random.key_data(ARGS[1]["key"]), X, np.float32(3)]
    expected = list(jax.tree.leaves(step(*ARGS, **KEYWORDS)))
    for outputs in (partition.run(*flat), partition.run_flat(flat)):
        assert isinstance(outputs, tuple) and len(outputs) == 3
        np.testing.assert_allclose(outputs[0], expected[0], rtol=1e-5)
        np.testing.assert_array_equal(outputs[2], jax.random.key_data(expected[2]))


def test_what_is_not_for_the_function_is_refused() -> None:
    partition = pyshardy.partition(module())
    for args, keywords in (
        (ARGS, {}),  # no scale
        (ARGS[:1], {"scale": 3.0}),
        ((Params(W, None, "other"), *ARGS[1:]), KEYWORDS),
        ((Params(W, W), *ARGS[1:]), KEYWORDS),
        ((Params(W[:4], None), *ARGS[1:]), KEYWORDS),
        ((*ARGS[:3], X), KEYWORDS),  # an array where a static argument was
        (ARGS, KEYWORDS | {"more": X}),
        (("x", *ARGS[1:]), KEYWORDS),
        ((*ARGS[:3], 3), KEYWORDS),  # another static value
        (ARGS, KEYWORDS | {"mode": "plain"}),
        (ARGS, KEYWORDS | {"other": "plain"}),
    ):
        assert inputs_of_call(partition.before.origin, args, keywords) is None
        with pytest.raises(
            UsageError, match=r"running module @jit_step: got .* needed (arguments like those|the same functions)"
        ):
            partition.run(*args, **keywords)
    module_ = pyshardy.load(lambda tree, x: x @ tree["w"], {"w": W}, X, mesh=MESH)
    with pytest.raises(UsageError, match=r"array of shape \(4, 8\) for tree\['w'\], needed shape \(16, 8\)"):
        pyshardy.run(module_, {"w": W[:4]}, X)
    with pytest.raises(UsageError, match="got a ndarray, needed arguments like .*, or 4 arrays, one per input"):
        partition.run(X)
    with pytest.raises(
        UsageError, match="running function @main: got a ndarray, an int, needed 1 array, one per input"
    ):
        pyshardy.run("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }", X, scale=3)


def test_donated_arguments_are_used_up() -> None:
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    x = {"x": jax.device_put(X, NamedSharding(mesh, P("data")))}
    result = pyshardy.run(
        lambda tree: {"x": tree["x"] + 1}, x, mesh=mesh, in_shardings=({"x": P("data")},), donate_argnums=0
    )
    np.testing.assert_array_equal(result["x"], X + 1)
    assert x["x"].is_deleted()


def test_leaves_that_are_no_arrays() -> None:
    def apply(model: Any, x: Any) -> Any:
        return {"y": model["act"](x @ model["w"]), "act": model["act"]}

    model = {"w": W, "act": jnp.tanh}
    partition = pyshardy.partition(pyshardy.load(apply, model, X, mesh=MESH))
    found = partition.run(model, X)
    assert found["act"] is jnp.tanh
    np.testing.assert_allclose(found["y"], np.tanh(X @ W), rtol=1e-5)
    with pytest.raises(UsageError):
        partition.run({"w": W, "act": jnp.sin}, X)


def test_exported_functions() -> None:
    exported = export.export(jax.jit(lambda tree: {"sum": tree["a"] + tree["b"]}))({"a": X, "b": X})
    found = pyshardy.run(pyshardy.partition(exported), {"a": X, "b": X})
    np.testing.assert_array_equal(found["sum"], X + X)


def test_a_function_without_arguments() -> None:
    found = pyshardy.partition(pyshardy.load(lambda: {"zeros": jnp.zeros(8)}, mesh=MESH)).run()
    assert found["zeros"].shape == (8,)
