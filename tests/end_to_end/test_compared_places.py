"""The view of XLA for TPUs changes no numbers: scatters as comparisons, on eight devices."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.ir.op_lists import ops_named

ROWS, WORDS = 16, 320


def gradient(x: jax.Array, at: jax.Array) -> jax.Array:
    """The gradient of a cross-entropy, whose labels may be out of bounds."""
    chosen = jnp.take_along_axis(jax.nn.log_softmax(x), at[:, None], 1, mode="fill", fill_value=0.0)
    return -jnp.sum(chosen * jnp.arange(1.0, ROWS + 1)[:, None])


@pytest.mark.parametrize("kind", ["int32", "uint8"])
def test_numbers_are_the_same(kind: str) -> None:
    x = np.random.default_rng(0).normal(size=(ROWS, WORDS)).astype(np.float32)
    at = np.array([0, 5, 255, 100, 3, 3, 77, 31] * 2, kind)
    if kind == "int32":
        at[:4] = 319, 320, -1, -321
    function = jax.grad(gradient)
    module = pyshardy.load(function, x, at, mesh={"data": 2, "model": 4}, in_shardings=(P("data", "model"), P("data")))
    found = pyshardy.partition(module, compiler="none", view="tpu")
    if kind == "int32":
        assert not any(True for _ in ops_named(found.module.root, ("stablehlo.scatter",)))
    np.testing.assert_allclose(found.run(x, at), jax.jit(function)(x, at), rtol=1e-5, atol=1e-6)
