"""Programs over time: recurrent networks, transformers, decoding, diffusion."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from support.steps import descent_and_loss

from .base import constant, integers, key, normal, program, weight


def rotary(x, positions):
    """`x: [..., time, heads, size]` with each pair of features turned by an angle that grows with the position."""
    frequency = 100.0 ** -np.linspace(0, 1, x.shape[-1] // 2, endpoint=False, dtype=np.float32)
    angle = positions[:, None, None] * frequency
    first, second = jnp.split(x, 2, axis=-1)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


@program(data=4, model=2)
def lstm_training(mesh: Mesh) -> tuple[Any, ...]:
    """A recurrent network by scan over time, with its gradient; the four gates lie along one sharded dimension."""

    def loss(params, x, y):
        def cell(state, inputs):
            hidden, memory = state
            gates = inputs @ params["in"] + hidden @ params["recurrent"] + params["bias"]
            enter, forget, leave, new = jnp.split(gates, 4, axis=-1)
            memory = jax.nn.sigmoid(forget) * memory + jax.nn.sigmoid(enter) * jnp.tanh(new)
            hidden = jax.nn.sigmoid(leave) * jnp.tanh(memory)
            return (hidden, memory), hidden

        start = jnp.zeros((x.shape[0], 16))
        _, outputs = jax.lax.scan(cell, (start, start), x.swapaxes(0, 1))
        return jnp.mean((outputs.swapaxes(0, 1) - y) ** 2)

    params = {"in": weight(8, 64), "recurrent": weight(16, 64), "bias": constant(0, 64)}
    specs = {"in": P(None, "model"), "recurrent": P(None, "model"), "bias": None}
    return jax.value_and_grad(loss), (params, normal(8, 5, 8), normal(8, 5, 16)), (specs, P("data"), None)


@program(data=2, model=4)
def transformer_scan_remat(mesh: Mesh) -> tuple[Any, ...]:
    """Stacked layers by scan, rematerialized by jax.checkpoint; grouped-query attention, swiglu; gradient step."""

    def layer(x, w):
        batch, time, width = x.shape
        y = x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * w["norm"]
        q = (y @ w["q"]).reshape(batch, time, 4, 2, 8)
        k, v = jnp.moveaxis((y @ w["kv"]).reshape(batch, time, 2, 4, 8), 2, 0)
        logits = jnp.einsum("bsgrd,btgd->bgrst", q, k) / np.sqrt(8)
        logits = jnp.where(jnp.arange(time)[:, None] >= jnp.arange(time), logits, -1e9)
        mixed = jnp.einsum("bgrst,btgd->bsgrd", jax.nn.softmax(logits), v).reshape(batch, time, -1)
        x = jax.lax.with_sharding_constraint(x + mixed @ w["o"], NamedSharding(mesh, P("data")))
        return x + (jax.nn.silu(x @ w["gate"]) * (x @ w["up"])) @ w["down"], None

    def loss(params, tokens):
        save_products = jax.checkpoint(layer, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable)
        x, _ = jax.lax.scan(save_products, params["embed"][tokens], params["layers"])
        logits = jax.nn.log_softmax(x[:, :-1] @ params["embed"].T)
        return -jnp.mean(jnp.take_along_axis(logits, tokens[:, 1:, None], axis=-1))

    shapes = {"q": (32, 64), "kv": (32, 64), "o": (64, 32), "gate": (32, 64), "up": (32, 64), "down": (64, 32)}
    layers = {name: normal(3, *shape, scale=shape[0] ** -0.5) for name, shape in shapes.items()}
    layers["norm"] = constant(1, 3, 32)
    specs = dict.fromkeys(layers) | {"q": P(None, None, "model"), "up": P(None, None, "model")}
    params = {"embed": normal(64, 32, scale=0.3), "layers": layers}
    return (
        descent_and_loss(loss),
        (params, integers(4, 9, high=64)),
        ({"embed": P("model", None), "layers": specs}, P("data")),
    )


@program(data=4, model=2, donate=(1,))
def decode_step(mesh: Mesh) -> tuple[Any, ...]:
    """One token through rotary attention with a cache of keys and values, written at a position known at run time."""

    def step(params, cache, tokens, position):
        x = params["embed"][tokens][:, None]
        filled = jnp.arange(16) <= position
        updated = []
        for w, old in zip(params["layers"], cache):
            q, k, v = ((x @ w[name]).reshape(-1, 1, 4, 8) for name in "qkv")
            at = jnp.full(1, position)
            new = jnp.stack([rotary(k, at), v])
            entry = jax.lax.dynamic_update_slice(old, new, (0, 0, position, 0, 0))
            logits = jnp.einsum("bqhd,bthd->bhqt", rotary(q, at), entry[0])
            weights = jax.nn.softmax(jnp.where(filled, logits, -jnp.inf))
            x = x + jnp.einsum("bhqt,bthd->bqhd", weights, entry[1]).reshape(-1, 1, 32) @ w["o"]
            updated.append(entry)
        logits = (x @ params["embed"].T)[:, 0]
        return updated, jnp.argmax(logits, axis=-1), jax.lax.dynamic_slice_in_dim(logits, position, 8, axis=1)

    layers = [{name: weight(32, 32) for name in "qkvo"} for _ in range(2)]
    specs = [{name: P(None, "model") for name in "qkv"} | {"o": None}] * 2
    cache = [normal(2, 8, 16, 4, 8) for _ in layers]
    inputs = ({"embed": weight(64, 32), "layers": layers}, cache, integers(8, high=64), integers(low=5, high=6))
    kept = P(None, "data", None, "model")
    return step, inputs, ({"embed": None, "layers": specs}, kept, P("data"), None), (kept, None, None)


@program(data=8)
def diffusion_sampling(mesh: Mesh) -> tuple[Any, ...]:
    """A reverse diffusion by scan, with noise from keys split inside the loop."""

    def sample(params, seed, shape_like):
        def denoise(x, inputs):
            time, noise_key = inputs
            angle = time * 2.0 ** jnp.arange(4)
            features = jnp.concatenate([jnp.sin(angle), jnp.cos(angle)])
            hidden = jax.nn.silu(x @ params["in"] + features @ params["time"])
            noise = jax.random.normal(noise_key, x.shape)
            return 0.9 * (x - 0.1 * hidden @ params["out"]) + 0.05 * noise, jnp.mean(x * x)

        start, rest = jax.random.split(seed)
        x = jax.lax.with_sharding_constraint(
            jax.random.normal(start, shape_like.shape), NamedSharding(mesh, P("data", None))
        )
        return jax.lax.scan(denoise, x, (jnp.linspace(1, 0, 6), jax.random.split(rest, 6)))

    params = {"in": weight(16, 32), "time": weight(8, 32), "out": weight(32, 16)}
    return sample, (params, key(), normal(8, 16)), None


@program(data=2, time=4)
def state_space(mesh: Mesh) -> tuple[Any, ...]:
    """A linear recurrence by associative scan, with time itself split over devices; and its gradient."""

    def forward(params, x):
        decay = jax.nn.sigmoid(x @ params["decay"])

        def combine(left, right):
            return left[0] * right[0], right[0] * left[1] + right[1]

        _, states = jax.lax.associative_scan(combine, (decay, x @ params["in"]), axis=1)
        return jnp.mean((states @ params["out"]) ** 2)

    params = {"decay": weight(8, 16), "in": weight(8, 16), "out": weight(16, 4)}
    return jax.value_and_grad(forward), (params, normal(4, 16, 8)), (None, P("data", "time"))
