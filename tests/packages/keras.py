"""Programs with keras on JAX, through its stateless functions."""

from __future__ import annotations

import os
from typing import Any

import jax
import jax.numpy as jnp

from .base import f32, i32, lower, program


def import_keras() -> Any:
    """Keras with JAX behind it."""
    os.environ["KERAS_BACKEND"] = "jax"
    import keras

    keras.utils.set_random_seed(0)
    return keras


def abstract(variables: Any) -> list[jax.ShapeDtypeStruct]:
    """The shapes of variables."""
    return [jax.ShapeDtypeStruct(tuple(v.shape), v.dtype) for v in variables]


def lower_step(model: Any, loss_of: Any, optimizer: Any, x: Any, y: Any) -> jax.stages.Lowered:
    """A training step of a model."""
    optimizer.build(model.trainable_variables)

    def loss(trainable, others, x, y):
        predicted, others = model.stateless_call(trainable, others, x, training=True)
        return jnp.mean(loss_of(y, predicted)), others

    def step(trainable, others, state, x, y):
        (value, others), gradients = jax.value_and_grad(loss, has_aux=True)(trainable, others, x, y)
        trainable, state = optimizer.stateless_apply(state, gradients, trainable)
        return trainable, others, state, value

    shapes = map(abstract, (model.trainable_variables, model.non_trainable_variables, optimizer.variables))
    return lower(step, *shapes, x, y)


@program("keras")
def dense_forward() -> jax.stages.Lowered:
    """A functional model with two inputs and a shared layer, in evaluation."""
    keras = import_keras()
    left, right = keras.Input((16,)), keras.Input((16,))
    shared = keras.layers.Dense(32, activation="gelu")
    joined = keras.layers.Concatenate()([shared(left), shared(right)])
    model = keras.Model([left, right], keras.layers.Dense(12, activation="softmax")(joined))

    def run(trainable, others, left, right):
        return model.stateless_call(trainable, others, [left, right], training=False)[0]

    shapes = abstract(model.trainable_variables), abstract(model.non_trainable_variables)
    return lower(run, *shapes, f32(8, 16), f32(8, 16))


@program("keras")
def conv_step() -> jax.stages.Lowered:
    """Separable convolutions, batch norm, dropout and upsampling."""
    keras = import_keras()
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((16, 16, 4)),
            layers.Conv2D(8, 3, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.MaxPooling2D(2),
            layers.SeparableConv2D(16, 3, padding="same", activation="silu"),
            layers.UpSampling2D(2),
            layers.SpatialDropout2D(0.2),
            layers.GlobalAveragePooling2D(),
            layers.Dense(12),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return lower_step(model, loss, keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True), f32(8, 16, 16, 4), i32(8))


@program("keras")
def recurrent_step() -> jax.stages.Lowered:
    """An embedding with masked zeros, a bidirectional LSTM, time-distributed outputs."""
    keras = import_keras()
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((12,), dtype="int32"),
            layers.Embedding(48, 16),
            layers.Bidirectional(layers.LSTM(16, return_sequences=True)),
            layers.GRU(16, return_sequences=True),
            layers.TimeDistributed(layers.Dense(8)),
        ]
    )
    return lower_step(model, keras.losses.MeanSquaredError(), keras.optimizers.AdamW(1e-3), i32(8, 12), f32(8, 12, 8))


@program("keras")
def transformer_step() -> jax.stages.Lowered:
    """Grouped-query attention and a gated perceptron with layer norms, trained by adafactor."""
    keras = import_keras()
    layers = keras.layers
    tokens = keras.Input((12,), dtype="int32")
    x = layers.Embedding(48, 32)(tokens)
    normed = layers.LayerNormalization()(x)
    x = x + layers.GroupQueryAttention(8, 4, 2)(normed, normed, use_causal_mask=True)
    normed = layers.RMSNormalization()(x)
    x = x + layers.Dense(32)(layers.Dense(64, activation="swish")(normed) * layers.Dense(64)(normed))
    model = keras.Model(tokens, layers.Dense(48)(x))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return lower_step(model, loss, keras.optimizers.Adafactor(1e-2), i32(8, 12), i32(8, 12))
