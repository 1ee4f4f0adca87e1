"""Models of many equal layers, of every way to write them, with a few weights and the batch sharded."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from .base import Program, f32, i32, key

LAYERS = 24
MODELS: dict[str, Program] = {}
"""The models by name."""
Rule = Callable[[str, Any], P]


def model(*packages: str) -> Callable[[Callable[[], jax.stages.Lowered]], Program]:
    """Turn the decorated function into a model, called as the function."""

    def add(lower: Callable[[], jax.stages.Lowered]) -> Program:
        MODELS[lower.__name__] = Program(lower.__name__, packages, lower)
        return MODELS[lower.__name__]

    return add


def train(loss: Callable[..., Any], rule: Rule, params: Any, *data: Any) -> jax.stages.Lowered:
    """A step of gradient descent, lowered with the shardings that the rule gives to paths and leaves."""
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model"))

    def step(params: Any, *data: Any) -> Any:
        gradients = jax.grad(loss)(params, *data)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)

    def sharding(path: Any, leaf: Any) -> NamedSharding:
        return NamedSharding(mesh, rule(jax.tree_util.keystr(path), leaf))

    weights = jax.tree_util.tree_map_with_path(sharding, params)
    batches = jax.tree.map(lambda _: NamedSharding(mesh, P("data")), data)
    return jax.jit(step, in_shardings=(weights, *batches)).lower(params, *data)


def on_columns(*parts: str) -> Rule:
    """A rule that shards the columns of weights whose path has all these parts."""
    return lambda path, _: P(None, "model") if all(part in path for part in parts) else P()


@model("flax")
def linen() -> jax.stages.Lowered:
    """A transformer of linen modules."""
    import flax.linen as nn

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = x + nn.MultiHeadDotProductAttention(num_heads=4)(nn.LayerNorm()(x))
            return x + nn.Dense(32)(nn.relu(nn.Dense(64)(nn.LayerNorm()(x))))

    class Model(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(48, 32)(tokens)
            for _ in range(LAYERS):
                x = Block()(x)
            return nn.Dense(48)(x)

    tokens = i32(8, 12)
    params = jax.eval_shape(Model().init, key(), tokens)
    return train(lambda p, tokens: Model().apply(p, tokens).mean(), on_columns("Dense_0", "kernel"), params, tokens)


@model("flax")
def nnx() -> jax.stages.Lowered:
    """Blocks of nnx modules."""
    from flax import nnx

    class Block(nnx.Module):
        def __init__(self, rngs):
            self.norm = nnx.LayerNorm(32, rngs=rngs)
            self.up = nnx.Linear(32, 128, rngs=rngs)
            self.down = nnx.Linear(128, 32, rngs=rngs)

        def __call__(self, x):
            return x + self.down(nnx.gelu(self.up(self.norm(x))))

    class Model(nnx.Module):
        def __init__(self, rngs):
            self.blocks = nnx.List([Block(rngs) for _ in range(LAYERS)])

        def __call__(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    structure, state = nnx.split(nnx.eval_shape(lambda: Model(nnx.Rngs(0))))
    rule = on_columns("up", "kernel")
    return train(lambda state, x: nnx.merge(structure, state)(x).mean(), rule, state, f32(16, 32))


@model("haiku")
def haiku() -> jax.stages.Lowered:
    """Layers of haiku, by name."""
    import haiku as hk

    def network(x):
        for layer in range(LAYERS):
            hidden = hk.Linear(64, name=f"up_{layer}")(hk.LayerNorm(-1, True, True)(x))
            x = x + hk.Linear(32, name=f"down_{layer}")(jax.nn.relu(hidden))
        return x

    apply = hk.without_apply_rng(hk.transform(network))
    params = jax.eval_shape(apply.init, key(), f32(16, 32))
    return train(lambda p, x: apply.apply(p, x).mean(), on_columns("up_", "'w'"), params, f32(16, 32))


@model("equinox")
def equinox() -> jax.stages.Lowered:
    """Equinox modules in a list."""
    import equinox as eqx

    class Block(eqx.Module):
        up: eqx.nn.Linear
        down: eqx.nn.Linear
        norm: eqx.nn.LayerNorm

        def __init__(self, key):
            first, second = jax.random.split(key)
            self.up = eqx.nn.Linear(32, 64, key=first)
            self.down = eqx.nn.Linear(64, 32, key=second)
            self.norm = eqx.nn.LayerNorm(32)

        def __call__(self, x):
            return x + self.down(jax.nn.relu(self.up(self.norm(x))))

    class Model(eqx.Module):
        blocks: list

        def __init__(self, key):
            self.blocks = [Block(one) for one in jax.random.split(key, LAYERS)]

        def __call__(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    network = eqx.filter_eval_shape(Model, key())
    rule: Rule = lambda path, _: P("model") if ".up.weight" in path else P()  # noqa: E731
    return train(lambda network, x: jax.vmap(network)(x).mean(), rule, network, f32(16, 32))


@model("keras")
def keras() -> jax.stages.Lowered:
    """A functional model of keras, whose variables are a list without names."""
    os.environ.setdefault("KERAS_BACKEND", "jax")
    import keras as k

    x = given = k.Input((32,))
    for _ in range(LAYERS):
        hidden = k.layers.Dense(128, activation="relu")(k.layers.LayerNormalization()(x))
        x = x + k.layers.Dense(32)(hidden)
    network = k.Model(given, x)
    weights = [jax.ShapeDtypeStruct(value.shape, value.dtype) for value in network.trainable_variables]
    rule: Rule = lambda _, leaf: P(None, "model") if leaf.shape == (32, 128) else P()  # noqa: E731

    def loss(weights, x):
        found, _ = network.stateless_call(weights, [], x)
        return jnp.mean(found)

    return train(loss, rule, weights, f32(16, 32))
