"""Programs with dm-haiku."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .base import f32, gradient_step, i32, key, lower, optimizer_step, program


@program("haiku")
def resnet_forward() -> jax.stages.Lowered:
    """A small residual network with batch norm, in evaluation."""
    import haiku as hk

    def network(images, is_training):
        model = hk.nets.ResNet(
            blocks_per_group=(1, 1, 1, 1),
            num_classes=12,
            bottleneck=False,
            channels_per_group=(8, 8, 16, 16),
            use_projection=(True, True, True, True),
        )
        return model(images, is_training=is_training)

    model = hk.without_apply_rng(hk.transform_with_state(network))
    params, state = jax.eval_shape(lambda rng, x: model.init(rng, x, True), key(), f32(8, 32, 32, 3))
    return lower(lambda params, state, x: model.apply(params, state, x, False)[0], params, state, f32(8, 32, 32, 3))


@program("haiku", "optax")
def autoencoder_step() -> jax.stages.Lowered:
    """A variational autoencoder: random latents, Kullback-Leibler term, adam."""
    import haiku as hk
    import optax

    def network(x):
        hidden = jax.nn.relu(hk.Linear(32)(hk.Flatten()(x)))
        mean, log_scale = hk.Linear(8)(hidden), hk.Linear(8)(hidden)
        z = mean + jnp.exp(log_scale) * jax.random.normal(hk.next_rng_key(), mean.shape)
        logits = hk.nets.MLP([32, 64])(z).reshape(x.shape)
        divergence = 0.5 * jnp.sum(jnp.exp(2 * log_scale) + mean**2 - 1 - 2 * log_scale, axis=-1)
        return jnp.mean(optax.sigmoid_binary_cross_entropy(logits, x).sum((1, 2)) + divergence)

    model = hk.transform(network)
    optimizer = optax.adam(1e-3)
    params = jax.eval_shape(model.init, key(), f32(16, 8, 8))
    state = jax.eval_shape(optimizer.init, params)
    return lower(optimizer_step(model.apply, optimizer), params, state, key(), f32(16, 8, 8))


@program("haiku")
def recurrent_step() -> jax.stages.Lowered:
    """A two-layer LSTM under `hk.dynamic_unroll`, in time-major order."""
    import haiku as hk

    def network(tokens):
        core = hk.DeepRNN([hk.LSTM(32), jax.nn.tanh, hk.GRU(16)])
        outputs, _ = hk.dynamic_unroll(core, hk.Embed(48, 16)(tokens), core.initial_state(tokens.shape[1]))
        return hk.Linear(48)(outputs)

    def loss(params, tokens):
        log_probabilities = jax.nn.log_softmax(model.apply(params, tokens))
        return -jnp.mean(jnp.take_along_axis(log_probabilities, tokens[..., None], -1))

    model = hk.without_apply_rng(hk.transform(network))
    params = jax.eval_shape(model.init, key(), i32(12, 8))
    return lower(gradient_step(loss), params, i32(12, 8))


@program("haiku")
def attention_forward() -> jax.stages.Lowered:
    """Cross attention with a mask and layer norm, mapped over a batch."""
    import haiku as hk

    def network(x, memory, mask):
        attended = hk.MultiHeadAttention(num_heads=4, key_size=8, w_init_scale=1.0)(x, memory, memory, mask)
        return hk.LayerNorm(-1, create_scale=True, create_offset=True)(x + attended)

    model = hk.without_apply_rng(hk.transform(network))
    data = f32(8, 12, 32), f32(8, 16, 32), jax.ShapeDtypeStruct((8, 1, 12, 16), jnp.bool_)
    return lower(model.apply, jax.eval_shape(model.init, key(), *data), *data)
