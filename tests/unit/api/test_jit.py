"""`pyshardy.jit`: what it returns is what `jax.jit` returns."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.errors import UsageError

MESH = {"data": 4, "model": 2}
X, W = np.arange(128, dtype=np.float32).reshape(8, 16) / 64, np.ones((16, 16), np.float32)


def same(found, expected) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_trees_in_and_out() -> None:
    def step(params, unused, x, *, scale):
        return {"y": jnp.tanh(x @ params["w"]) * scale, "sum": (x.sum(), params["b"])}

    jitted = pyshardy.jit(step, mesh=MESH, in_shardings=({"w": P(None, "model"), "b": None}, None, P("data")))
    args = {"w": W, "b": 2.0}, X, X
    same(jitted(*args, scale=3.0), jax.jit(step)(*args, scale=3.0))
    assert jitted(*args, scale=3.0)["y"].sharding.spec == P("data", "model")
    assert jitted.__name__ == "step"


def test_the_program_can_be_looked_at() -> None:
    jitted = pyshardy.jit(lambda x, w: x @ w, mesh=MESH, in_shardings=(P("data", "model"), P("model")))
    assert "stablehlo.dot_general" in jitted.lower(X, W).text()
    assert jitted.propagate(X, W).out_specs == P("data", None)
    assert jitted.partition(X, W).traffic.collectives[0].kind == "all_reduce"
    same(jitted(X, W), X @ W)


def test_it_traces_once_per_shape_and_static_value() -> None:
    traced = []

    def power(x, count):
        traced.append((x.shape, count))
        return x**count

    jitted = pyshardy.jit(power, mesh=MESH, in_shardings=(P("data"),), static_argnums=1)
    for x, count in ((X, 2), (X + 1, 2), (X, 3), (W, 2), (X, 2)):
        same(jitted(x, count), x**count)
    assert traced == [((8, 16), 2), ((8, 16), 3), ((16, 16), 2)]


@pytest.mark.slow
def test_keys() -> None:
    def draw(key, x):
        key, other = jax.random.split(key)
        return key, x + jax.random.uniform(other, x.shape)

    key = jax.random.key(3)
    (new, found), (expected, values) = (
        pyshardy.jit(draw, mesh=MESH, in_shardings=(None, P("data")))(key, X),
        draw(key, X),
    )
    assert jax.random.key_data(new).tolist() == jax.random.key_data(expected).tolist()
    np.testing.assert_allclose(found, values, rtol=1e-5)


def test_donated_arrays_are_used_up() -> None:
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    x = jax.device_put(X, jax.sharding.NamedSharding(mesh, P("data")))
    jitted = pyshardy.jit(lambda x: x + 1, mesh=mesh, in_shardings=P("data"), donate_argnums=0)
    same(jitted(x), X + 1)
    assert x.is_deleted()


def test_mistakes_are_those_of_jax() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        pyshardy.jit(lambda x, y: x, mesh=MESH)(X)
    with pytest.raises(jax.errors.ConcretizationTypeError):
        pyshardy.jit(lambda x: 1 if x.sum() > 0 else 2, mesh=MESH)(X)
    with pytest.raises(ValueError, match="array axis 0 is partitioned 4 times, but the dimension size is 3"):
        pyshardy.jit(lambda x: x, mesh=MESH, in_shardings=P("data"))(X[:3])


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match="got the option 'speed', needed one of donate_argnames, donate_argnums"):
        pyshardy.jit(lambda x: x, speed=1)
    with pytest.raises(UsageError, match="got one that is jitted already"):
        pyshardy.jit(jax.jit(lambda x: x))
    cluster = pyshardy.jit(lambda x: x + 1, mesh={"data": 512}, in_shardings=P("data"))
    assert cluster.propagate(jax.ShapeDtypeStruct((512,), np.float32)).out_specs == P("data")
    with pytest.raises(UsageError, match="needed 512"):
        cluster(np.ones(512, np.float32))


@pytest.mark.slow
def test_what_jax_takes_as_no_argument_is_refused_as_by_jax() -> None:
    def scaled(x, mode="double"):
        return x * (2 if mode == "double" else 3)

    for jit in (jax.jit, pyshardy.jit):
        options = {} if jit is jax.jit else {"mesh": MESH}
        with pytest.raises(
            TypeError, match="(?s)Error interpreting argument to .*scaled.* as an abstract array.*'str'"
        ):
            jit(scaled, **options)(X, "double")
        with pytest.raises(TypeError, match="as an abstract array"):
            jit(scaled, **options)(X, mode="double")
        for static in ({"static_argnames": "mode"}, {"static_argnums": 1}, {"static_argnums": -1}):
            same(jit(scaled, **options, **static)(X, "triple"), X * 3)
        same(jit(scaled, **options, static_argnames=("mode",))(X, mode="triple"), X * 3)
