"""Annotations inside traced code, by pyshardy and by `jax.jit`."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy import PartitionSpec as Spec
from pyshardy import constrain, propagation_barrier, shard_alike
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.errors import InvalidShardingError, UsageError

MESH = {"data": 2, "model": 4}
SHAPE = jax.ShapeDtypeStruct((8, 8), np.float32)
X = np.arange(64, dtype=np.float32).reshape(8, 8)


def jax_mesh() -> jax.sharding.Mesh:
    return jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def ops(function, *args) -> list[str]:
    """The annotations in a module, in order."""
    return re.findall(
        r"sdy\.(?:sharding_constraint|sharding_group|propagation_barrier).*", pyshardy.load(function, *args).text()
    )


@pytest.mark.parametrize(
    ("sharding", "text"),
    [
        (Spec("data", ("model:(1)2", "?"), priorities=(0, 1)), '[{"data"}p0, {"model":(1)2, ?}p1]'),
        (P("data"), '[{"data"}, {}]'),
        (Spec("?", replicated=["model", "data"]), '[{?}, {}], replicated={"data", "model"}'),
        (parse_sharding('<@any, [{}, {"model", ?}]>'), '[{}, {"model", ?}]'),
    ],
)
def test_a_constraint_says_everything(sharding, text: str) -> None:
    found = ops(lambda x: constrain(x, sharding, MESH), SHAPE)
    assert found == [f"sdy.sharding_constraint %arg0 <@mesh, {text}> : tensor<8x8xf32>"]


def test_the_mesh_of_a_constraint() -> None:
    named = NamedSharding(jax_mesh(), P("data"))
    inlined = parse_sharding('<@m, [{"data"}, {}]>').with_mesh(Mesh(MESH.items()))
    for sharding in (named, inlined):
        assert 'sharding_constraint %arg0 <@mesh, [{"data"}, {}]>' in ops(lambda x: constrain(x, sharding), SHAPE)[0]  # noqa: B023
    with pytest.raises(UsageError, match="constraining an array: got no mesh, needed one, as mesh="):
        constrain(X, P("data"))
    module = pyshardy.load(lambda x: constrain(x, P("data")), SHAPE, mesh=MESH)
    assert pyshardy.propagate(module).in_specs == (P("data", None),)


@pytest.mark.parametrize(
    ("sharding", "message"),
    [
        (P("tensor"), 'unknown axis name "tensor"'),
        (P("data", None, "model"), "sharding a tensor of 2 dimensions"),
        (parse_sharding("<@m, [{}]>"), "got 1 dimensions, needed 2"),
    ],
)
def test_constraints_that_do_not_fit(sharding, message: str) -> None:
    with pytest.raises(InvalidShardingError, match=message):
        jax.jit(lambda x: constrain(x, sharding, MESH))(X)


def test_jax_obeys_a_constraint() -> None:
    x = jax.device_put(X, NamedSharding(jax_mesh(), P()))
    found = jax.jit(lambda x: constrain(x + 1, Spec("data", ("model", "?")), MESH))(x)
    np.testing.assert_array_equal(found, X + 1)
    assert found.sharding.spec == P("data", "model")
    ones = jax.jit(lambda x: constrain({"a": x, "b": [x]}, Spec("data"), MESH))(X)
    np.testing.assert_array_equal(ones["b"][0], X)


def test_jax_obeys_tensors_alike() -> None:
    x = jax.device_put(X, NamedSharding(jax_mesh(), P("data", "model")))

    def same(x, alike):
        y = jnp.zeros((8, 8)) + jnp.arange(8.0)
        return shard_alike(x, y)[1] if alike else y

    found = pyshardy.propagate(
        pyshardy.load(lambda x: same(x, True), SHAPE, mesh=MESH, in_shardings=P("data", "model"))
    )
    assert found.out_specs == P("data", "model")
    jitted = jax.jit(lambda x: same(x, True), out_shardings=None)
    assert jitted(x).sharding.spec == P("data", "model")
    alone = pyshardy.load(lambda x: same(x, False), SHAPE, mesh=MESH, in_shardings=P("data", "model"))
    assert pyshardy.propagate(alone).out_specs == P()


@pytest.mark.parametrize(("direction", "spec"), [("none", P()), ("forward", P("data", None)), ("backward", P())])
def test_barriers(direction: str, spec: P) -> None:
    def passing(x):
        return jnp.tanh(propagation_barrier(jnp.sin(x), direction))

    module = pyshardy.load(passing, SHAPE, mesh=MESH, in_shardings=P("data"))
    assert pyshardy.propagate(module).out_specs == spec
    np.testing.assert_allclose(jax.jit(passing)(X), np.tanh(np.sin(X)), rtol=1e-5)


def test_groups_have_numbers_of_their_own_and_the_same_ones_every_time() -> None:
    def twice(x, y):
        x, y = shard_alike(x, y)
        return shard_alike(x + 1, y)

    found = ops(twice, SHAPE, SHAPE)
    assert [re.search(r"group_id=(\d)", op)[1] for op in found] == ["0", "0", "1", "1"]
    assert ops(lambda x, y: twice(x, y), SHAPE, SHAPE) == found


@pytest.mark.slow
def test_gradients_are_annotated_too() -> None:
    def loss(x):
        x = propagation_barrier(constrain(x, Spec("data", "?"), MESH), "forward")
        return (shard_alike(x, x * 2)[1] ** 2).sum()

    np.testing.assert_allclose(jax.grad(loss)(X), 8 * X)
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(X), 8 * X)
    found = ops(jax.grad(loss), SHAPE)
    assert sum("sharding_constraint" in op for op in found) == 2
    assert [op.split("=")[1].split(" ")[0] for op in found if "barrier" in op] == ["FORWARD", "BACKWARD"]


def test_batches_are_left_open() -> None:
    batch = jax.ShapeDtypeStruct((3, 8, 8), np.float32)
    assert '[{?}, {"data"}, {}]' in ops(jax.vmap(lambda x: constrain(x, P("data"), MESH)), batch)[0]
    assert len(ops(jax.vmap(propagation_barrier), batch)) == 1
    found = jax.jit(jax.vmap(shard_alike, (1, None)))(jnp.ones((8, 3, 8)), X)
    assert [array.shape for array in found] == [(3, 8, 8), (3, 8, 8)]


def test_keys_may_be_constrained() -> None:
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), 8))
    assert any('[{"data"}, {}]' in op for op in ops(lambda k: constrain(k, P("data"), MESH), keys))


def test_without_a_trace_nothing_happens() -> None:
    np.testing.assert_array_equal(constrain(X, P("data"), MESH), X)
    for array in (*shard_alike(X, X), propagation_barrier({"a": X})["a"]):
        np.testing.assert_array_equal(array, X)


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match=r"got the shapes \(8, 8\) and \(4, 8\), needed one shape"):
        shard_alike(X, X[:4])
    with pytest.raises(UsageError, match="got 'up', needed one of 'none', 'forward', 'backward'"):
        propagation_barrier(X, "up")


def test_jax_without_shardy_does_nothing() -> None:
    old = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", False)
    try:
        text = (
            jax.jit(lambda x: propagation_barrier(constrain(shard_alike(x, x)[0], P("data"), MESH))).lower(X).as_text()
        )
    finally:
        jax.config.update("jax_use_shardy_partitioner", old)
    assert "sdy." not in text
