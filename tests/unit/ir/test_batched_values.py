"""Values under `jax.vmap` are not to be constrained: their code sees them without the dimension of the batch."""

from __future__ import annotations

import jax
import jax.numpy as jnp

import pyshardy
from pyshardy.ir.source_values import source_values


def row(x: jax.Array) -> jax.Array:
    y = jnp.tanh(x)
    return y * 2


def whole(x: jax.Array) -> jax.Array:
    z = jnp.sin(x)
    return jax.vmap(row)(z)


def test_only_values_outside_of_vmap_are_found() -> None:
    module = pyshardy.load(whole, jax.ShapeDtypeStruct((8, 4), "float32"), mesh={"x": 2})
    functions = {value.function.rpartition(".")[2] for value in source_values(module.root)}
    assert functions == {"whole"}
    alone = pyshardy.load(row, jax.ShapeDtypeStruct((4,), "float32"), mesh={"x": 2})
    assert {value.function.rpartition(".")[2] for value in source_values(alone.root)} == {"row"}
