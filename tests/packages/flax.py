"""Programs with flax: linen modules and nnx modules."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .base import f32, gradient_step, i32, key, lower, optimizer_step, program


@program("flax", "optax")
def linen_transformer_step() -> jax.stages.Lowered:
    """A causal transformer with dropout, trained by adamw on next tokens."""
    import flax.linen as nn
    import optax

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x, mask):
            attention = nn.MultiHeadDotProductAttention(num_heads=4, dropout_rate=0.1, deterministic=False)
            x = x + attention(nn.LayerNorm()(x), mask=mask)
            hidden = nn.Dropout(0.1, deterministic=False)(nn.gelu(nn.Dense(64)(nn.LayerNorm()(x))))
            return x + nn.Dense(32)(hidden)

    class Model(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            embed = nn.Embed(48, 32)
            x = embed(tokens) + self.param("positions", nn.initializers.normal(), (12, 32))
            for _ in range(2):
                x = Block()(x, nn.make_causal_mask(tokens))
            return embed.attend(nn.LayerNorm()(x))

    def loss(params, tokens, rng):
        logits = model.apply(params, tokens, rngs={"dropout": rng})
        return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()

    model = Model()
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0), optax.adamw(optax.warmup_cosine_decay_schedule(0, 1, 8, 32))
    )
    params = jax.eval_shape(model.init, {"params": key(), "dropout": key()}, i32(8, 12))
    return lower(optimizer_step(loss, optimizer), params, jax.eval_shape(optimizer.init, params), i32(8, 12), key())


@program("flax")
def linen_conv_step() -> jax.stages.Lowered:
    """Convolutions, one of them separable, with batch norm and pooling; running statistics are updated."""
    import flax.linen as nn

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.Conv(8, (3, 3))(x)
            x = nn.relu(nn.BatchNorm(use_running_average=False)(x))
            x = nn.max_pool(x, (2, 2), strides=(2, 2))
            x = nn.Conv(16, (3, 3), strides=2, feature_group_count=8)(x)
            x = nn.GroupNorm(num_groups=4)(nn.Conv(16, (1, 1))(x))
            x = nn.avg_pool(nn.swish(x), (2, 2), strides=(2, 2))
            x = nn.ConvTranspose(8, (2, 2), strides=(2, 2))(x)
            return nn.Dense(12)(x.reshape(x.shape[0], -1))

    model = Model()

    def step(variables, x, y):
        def loss(params):
            predicted, updates = model.apply({**variables, "params": params}, x, mutable=["batch_stats"])
            return jnp.mean((predicted - y) ** 2), updates

        (value, updates), gradients = jax.value_and_grad(loss, has_aux=True)(variables["params"])
        params = jax.tree.map(lambda p, g: p - 0.1 * g, variables["params"], gradients)
        return {"params": params, **updates}, value

    variables = jax.eval_shape(model.init, key(), f32(8, 16, 16, 4))
    return lower(step, variables, f32(8, 16, 16, 4), f32(8, 12))


@program("flax")
def linen_lstm_step() -> jax.stages.Lowered:
    """A bidirectional LSTM over sequences of different lengths."""
    import flax.linen as nn

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x, lengths):
            both = nn.Bidirectional(nn.RNN(nn.OptimizedLSTMCell(16)), nn.RNN(nn.GRUCell(16)))
            return nn.Dense(8)(both(x, seq_lengths=lengths))

    model = Model()
    params = jax.eval_shape(model.init, key(), f32(8, 12, 16), i32(8))
    step = gradient_step(lambda params, x, lengths: jnp.mean(model.apply(params, x, lengths) ** 2))
    return lower(step, params, f32(8, 12, 16), i32(8))


@program("flax")
def linen_scanned_layers() -> jax.stages.Lowered:
    """Layers under `nn.scan` and `nn.remat`, with weights stacked along the layers."""
    import flax.linen as nn

    class Layer(nn.Module):
        @nn.compact
        def __call__(self, x, _):
            return x + nn.Dense(32)(nn.relu(nn.Dense(64)(nn.RMSNorm()(x)))), None

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            layers = nn.scan(nn.remat(Layer), variable_axes={"params": 0}, split_rngs={"params": True}, length=4)
            return layers()(x, None)[0]

    model = Model()
    params = jax.eval_shape(model.init, key(), f32(16, 32))
    return lower(gradient_step(lambda params, x: jnp.mean(model.apply(params, x) ** 2)), params, f32(16, 32))


@program("flax", "optax")
def nnx_classifier_step() -> jax.stages.Lowered:
    """An nnx network with dropout and an embedding, trained by its own optimizer object."""
    import optax
    from flax import nnx

    class Network(nnx.Module):
        def __init__(self, rngs):
            self.embed = nnx.Embed(48, 16, rngs=rngs)
            self.dense = nnx.Linear(16, 32, rngs=rngs)
            self.norm = nnx.BatchNorm(32, rngs=rngs)
            self.dropout = nnx.Dropout(0.2, rngs=rngs)
            self.head = nnx.Linear(32, 12, rngs=rngs)

        def __call__(self, tokens):
            hidden = nnx.relu(self.norm(self.dense(self.embed(tokens)).mean(1)))
            return self.head(self.dropout(hidden))

    def make():
        network = Network(nnx.Rngs(0))
        return network, nnx.Optimizer(network, optax.adam(1e-3), wrt=nnx.Param)

    structure, state = nnx.split(nnx.eval_shape(make))

    def step(state, tokens, labels):
        network, optimizer = nnx.merge(structure, state)

        def loss(network):
            return optax.softmax_cross_entropy_with_integer_labels(network(tokens), labels).mean()

        value, gradients = nnx.value_and_grad(loss)(network)
        optimizer.update(network, gradients)
        return nnx.state((network, optimizer)), value

    return lower(step, state, i32(16, 8), i32(16))


@program("flax")
def nnx_decoding_step() -> jax.stages.Lowered:
    """One step of decoding with a cache of keys and values."""
    from flax import nnx

    def make():
        rngs = nnx.Rngs(0)
        attention = nnx.MultiHeadAttention(num_heads=4, in_features=32, decode=True, rngs=rngs)
        attention.init_cache((8, 16, 32))
        return attention, nnx.Linear(32, 48, rngs=rngs)

    structure, state = nnx.split(nnx.eval_shape(make))

    def step(state, x):
        attention, head = nnx.merge(structure, state)
        logits = head(attention(x))
        return nnx.state((attention, head)), jnp.argmax(logits, -1)

    return lower(step, state, f32(8, 1, 32))
