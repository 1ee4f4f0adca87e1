"""Random numbers inside a program."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from .base import key, normal, program, weight


def dropout(mesh: Mesh) -> Any:
    """A gradient through two dropout masks, from two keys split off one."""

    def loss(params, rng, x, y):
        first, second = jax.random.split(rng)
        x = jnp.where(jax.random.bernoulli(first, 0.9, x.shape), x / 0.9, 0)
        hidden = jax.nn.relu(x @ params["w1"])
        hidden = jax.lax.with_sharding_constraint(hidden, NamedSharding(mesh, P("data", "model")))
        hidden = jnp.where(jax.random.bernoulli(second, 0.8, hidden.shape), hidden / 0.8, 0)
        return jnp.mean((hidden @ params["w2"] - y) ** 2)

    return jax.value_and_grad(loss)


PARAMS = {"w1": weight(16, 32), "w2": weight(32, 4)}
SPECS = (None, None, P("data"), P("data"))


@program(data=4, model=2)
def dropout_threefry(mesh: Mesh) -> tuple[Any, ...]:
    """Dropout from the default generator: plain integer arithmetic."""
    return dropout(mesh), (PARAMS, key(), normal(8, 16), normal(8, 4)), SPECS


@program(data=4, model=2)
def dropout_rbg(mesh: Mesh) -> tuple[Any, ...]:
    """Dropout from the hardware's generator: one opaque op per array."""
    return dropout(mesh), (PARAMS, key("rbg"), normal(8, 16), normal(8, 4)), SPECS


@program(data=8)
def distributions(mesh: Mesh) -> tuple[Any, ...]:
    """Draws by inversion, by rejection loops and by sorting; keys made, folded and returned."""

    def run(rng, logits):
        keys = jax.random.split(rng, 8)
        keys = jax.lax.with_sharding_constraint(keys, NamedSharding(mesh, P("data")))
        walks = jax.vmap(lambda k: jnp.cumsum(jax.random.normal(k, (5,))))(keys)
        tokens = jax.random.categorical(jax.random.fold_in(rng, 1), logits)
        return walks, tokens, jax.random.gamma(keys[0], 2.0, (8,)), jax.random.permutation(keys[1], 16), keys

    return run, (key(), normal(8, 10)), (None, P("data"))
