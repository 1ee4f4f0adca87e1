"""Programs with equinox."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .base import f32, gradient_step, key, lower, optimizer_step, program


@program("equinox", "optax")
def mlp_step() -> jax.stages.Lowered:
    """A perceptron mapped over a batch, trained by adam."""
    import equinox as eqx
    import optax

    model = eqx.filter_eval_shape(lambda k: eqx.nn.MLP(16, 12, 32, 2, key=k), key())
    params, static = eqx.partition(model, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    optimizer = optax.adam(1e-3)

    def loss(params, x, y):
        return jnp.mean((jax.vmap(eqx.combine(params, static))(x) - y) ** 2)

    return lower(
        optimizer_step(loss, optimizer), params, jax.eval_shape(optimizer.init, params), f32(8, 16), f32(8, 12)
    )


@program("equinox")
def conv_step() -> jax.stages.Lowered:
    """Convolutions with group norm and adaptive pooling, mapped over a batch."""
    import equinox as eqx

    def make(k):
        keys = jax.random.split(k, 3)
        return eqx.nn.Sequential(
            [
                eqx.nn.Conv2d(4, 8, 3, padding=1, key=keys[0]),
                eqx.nn.GroupNorm(4, 8),
                eqx.nn.Lambda(jax.nn.silu),
                eqx.nn.MaxPool2d(2, 2),
                eqx.nn.ConvTranspose2d(8, 8, 2, stride=2, key=keys[1]),
                eqx.nn.AdaptiveAvgPool2d(4),
                eqx.nn.Lambda(jnp.ravel),
                eqx.nn.Linear(128, 12, key=keys[2]),
            ]
        )

    params, static = eqx.partition(eqx.filter_eval_shape(make, key()), lambda leaf: hasattr(leaf, "shape"))

    def loss(params, x, y):
        return jnp.mean((jax.vmap(eqx.combine(params, static))(x) - y) ** 2)

    return lower(gradient_step(loss), params, f32(8, 4, 16, 16), f32(8, 12))


@program("equinox")
def gru_step() -> jax.stages.Lowered:
    """A GRU scanned over a sequence."""
    import equinox as eqx

    def make(k):
        return eqx.nn.GRUCell(16, 32, key=k), eqx.nn.Linear(32, 8, key=k)

    params, static = eqx.partition(eqx.filter_eval_shape(make, key()), lambda leaf: hasattr(leaf, "shape"))

    def loss(params, x):
        cell, head = eqx.combine(params, static)

        def run(sequence):
            final, _ = jax.lax.scan(lambda h, value: (cell(value, h), None), jnp.zeros(32), sequence)
            return head(final)

        return jnp.mean(jax.vmap(run)(x) ** 2)

    return lower(gradient_step(loss), params, f32(8, 12, 16))


@program("equinox")
def attention_with_dropout() -> jax.stages.Lowered:
    """Self attention with rotary embeddings and dropout, mapped over a batch."""
    import equinox as eqx

    def make(k):
        return eqx.nn.MultiheadAttention(4, 32, dropout_p=0.1, key=k), eqx.nn.RotaryPositionalEmbedding(8)

    params, static = eqx.partition(eqx.filter_eval_shape(make, key()), lambda leaf: hasattr(leaf, "shape"))

    def run(params, x, rng):
        attention, rotary = eqx.combine(params, static)

        def rotate(query, keys, value):
            return jax.vmap(rotary, 1, 1)(query), jax.vmap(rotary, 1, 1)(keys), value

        def one(x, rng):
            return attention(x, x, x, mask=jnp.tril(jnp.ones((12, 12), bool)), key=rng, process_heads=rotate)

        return jax.vmap(one)(x, jax.random.split(rng, 8))

    return lower(run, params, f32(8, 12, 32), key())
