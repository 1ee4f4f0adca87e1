"""Mixtures of experts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from support.steps import descent_and_loss

from .base import normal, program, weight


@program(data=2, expert=4)
def moe_dense_dispatch(mesh: Mesh) -> tuple[Any, ...]:
    """Top-2 routing by one-hot dispatch and combine einsums, experts split over devices, balance loss; gradient."""

    def layer(params, x):
        gates = jax.nn.softmax(x @ params["router"])
        chosen, index = jax.lax.top_k(gates, 2)
        chosen = chosen / chosen.sum(-1, keepdims=True)
        picks = jax.nn.one_hot(index, 4)  # [group, token, pick, expert]
        rank = (jnp.cumsum(picks.reshape(x.shape[0], -1, 4), axis=1).reshape(picks.shape) - 1) * picks
        slots = jax.nn.one_hot(rank.sum(-1).astype(int), 6)  # tokens over the capacity of 6 fall away
        combine = jnp.einsum("gtp,gtpe,gtpc->gtec", chosen, picks, slots)
        inside = jnp.einsum("gtec,gtd->egcd", (combine > 0).astype(x.dtype), x)
        inside = jax.lax.with_sharding_constraint(inside, NamedSharding(mesh, P("expert", "data")))
        hidden = jax.nn.relu(jnp.einsum("egcd,edh->egch", inside, params["w1"]))
        y = jnp.einsum("gtec,egcd->gtd", combine, jnp.einsum("egch,ehd->egcd", hidden, params["w2"]))
        return y, jnp.sum(gates.mean((0, 1)) * picks.mean((0, 1, 2)))

    def loss(params, x, y):
        out, balance = layer(params, x)
        return jnp.mean((out - y) ** 2) + 0.01 * balance

    params = {
        "router": weight(16, 4),
        "w1": normal(4, 16, 32, scale=0.25),
        "w2": normal(4, 32, 16, scale=0.2),
    }
    specs = {"router": None, "w1": P("expert"), "w2": P("expert")}
    return jax.value_and_grad(loss), (params, normal(4, 8, 16), normal(4, 8, 16)), (specs, P("data"), P("data"))


@program(data=2, expert=4)
def moe_sorted_dispatch(mesh: Mesh) -> tuple[Any, ...]:
    """Routing by sorting tokens, gathering them per expert and scattering the results back; gradient."""

    def layer(params, x):
        gates = jax.nn.softmax(x @ params["router"])
        expert = jnp.argmax(gates, axis=-1)
        order = jnp.argsort(expert, stable=True)
        counts = jnp.bincount(expert, length=4)
        start = jnp.cumsum(counts) - counts
        slot = start[:, None] + jnp.arange(8)  # [expert, capacity], places in the sorted order
        valid = jnp.arange(8) < counts[:, None]
        token = order[jnp.where(valid, slot, 0)]
        inside = jnp.where(valid[..., None], x[token], 0.0)
        hidden = jax.nn.gelu(jnp.einsum("ecd,edh->ech", inside, params["w1"]))
        outside = jnp.einsum("ech,ehd->ecd", hidden, params["w2"]) * valid[..., None]
        y = jnp.zeros_like(x).at[token.reshape(-1)].add(outside.reshape(-1, x.shape[1]))
        return y * jnp.take_along_axis(gates, expert[:, None], axis=1)

    def loss(params, x, y):
        return jnp.mean((layer(params, x) - y) ** 2)

    params = {
        "router": weight(16, 4),
        "w1": normal(4, 16, 32, scale=0.25),
        "w2": normal(4, 32, 16, scale=0.2),
    }
    specs = {"router": None, "w1": P("expert"), "w2": None}
    return descent_and_loss(loss), (params, normal(32, 16), normal(32, 16)), (specs, P("data"), None)


@program(data=4, expert=2)
def ragged_product(mesh: Mesh) -> tuple[Any, ...]:
    """A product of groups of uneven size, as tokens sorted by expert make: jax.lax.ragged_dot."""

    def run(x, w, router):
        expert = jnp.argmax(x @ router, axis=-1)
        x = x[jnp.argsort(expert, stable=True)]
        return jax.lax.ragged_dot(x, w, jnp.bincount(expert, length=4).astype(jnp.int32))

    return run, (normal(16, 8), normal(4, 8, 12, scale=0.3), weight(8, 4)), (P("data"), P("expert"), None)
