"""A value that `jax.checkpoint` is called with has a gradient, which comes from an op inside of what is called."""

from __future__ import annotations

import jax
import jax.numpy as jnp

import pyshardy
from pyshardy.ir.source_values import source_values


def block(w: jax.Array, x: jax.Array) -> jax.Array:
    y = jnp.tanh(x @ w)
    return x + y


def loss(params: dict[str, jax.Array], tokens: jax.Array) -> jax.Array:
    found = jnp.take(params["embed"], tokens, axis=0)
    for _ in range(2):
        found = jax.checkpoint(block)(params["w"], found)
    return (found**2).sum()


def test_a_value_before_a_checkpoint_is_found() -> None:
    params = {"embed": jax.ShapeDtypeStruct((64, 8), "float32"), "w": jax.ShapeDtypeStruct((8, 8), "float32")}
    tokens = jax.ShapeDtypeStruct((4, 16), "int32")
    module = pyshardy.load(jax.grad(loss), params, tokens, mesh={"x": 2})
    first = loss.__code__.co_firstlineno + 1
    (value,) = [one for one in source_values(module.root) if one.span.line == first]
    assert value.shape == (4, 16, 8) and len(value.made) == 2  # with its gradient
