"""A decoder-only transformer's training step in plain JAX, sharded by hand in very few places.

The batch is split over the mesh axis `data`; three weights of each layer are split over `model`, in the manner of
Megatron. Nothing is said about the other weights, the optimizer's state, the activations and the gradients: sharding
propagation finds those. Layers are a Python loop, so the lowered module grows with their number.

    python -m pyshardy.examples.transformer --layers 4 > transformer.mlir
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

Tree = Any  # a nest of dicts and lists with arrays, shapes or shardings as its leaves


@dataclass(frozen=True, slots=True)
class Config:
    """Sizes of the model, of its input and of the mesh."""

    layers: int = 4
    width: int = 512
    heads: int = 8
    vocabulary: int = 4096
    batch: int = 16
    sequence: int = 128
    optimizer: str = "adam"  # or "sgd"
    learning_rate: float = 1e-3
    data: int = 4  # devices along the mesh axis of that name; data * model devices in all
    model: int = 2

    def __post_init__(self) -> None:
        for whole, part in (("width", "heads"), ("batch", "data")):
            if getattr(self, part) < 1 or getattr(self, whole) < 1 or getattr(self, whole) % getattr(self, part):
                raise ValueError(f"{part} must divide {whole}: {getattr(self, part)}, {getattr(self, whole)}")
        if min(self.layers, self.vocabulary, self.sequence, self.model) < 1:
            raise ValueError("layers, vocabulary, sequence and model must be at least 1")
        if self.optimizer not in ("adam", "sgd"):
            raise ValueError(f"optimizer must be adam or sgd: {self.optimizer}")


def shapes(config: Config) -> Tree:
    """The parameters' shapes; the tree has the structure of the parameters themselves."""
    width, hidden = config.width, 4 * config.width
    layer = {
        "norm1": (width,),
        "wq": (width, width),
        "wk": (width, width),
        "wv": (width, width),
        "wo": (width, width),
        "norm2": (width,),
        "w1": (width, hidden),
        "w2": (hidden, width),
    }
    return {"embed": (config.vocabulary, width), "layers": [layer for _ in range(config.layers)], "norm": (width,)}


def rms_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    """`x` with its last dimension scaled to a root mean square of one, then by `scale`."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def attention(layer: Tree, x: jax.Array, heads: int) -> jax.Array:
    """Causal multi-head attention of `x: [batch, sequence, width]` to itself."""
    batch, sequence, width = x.shape
    query, key, value = ((x @ layer[name]).reshape(batch, sequence, heads, -1) for name in ("wq", "wk", "wv"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(width // heads)
    causal = jnp.tril(jnp.ones((sequence, sequence), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, value)
    return mixed.reshape(batch, sequence, width) @ layer["wo"]


def loss(config: Config, params: Tree, tokens: jax.Array, targets: jax.Array) -> jax.Array:
    """Mean cross entropy of predicting `targets` from `tokens`, both `[batch, sequence]`."""
    x = params["embed"][tokens]
    for layer in params["layers"]:
        x = x + attention(layer, rms_norm(x, layer["norm1"]), config.heads)
        x = x + jax.nn.gelu(rms_norm(x, layer["norm2"]) @ layer["w1"]) @ layer["w2"]
    logits = rms_norm(x, params["norm"]) @ params["embed"].T
    wanted = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - wanted)


def update(config: Config, params: Tree, state: Tree, gradients: Tree) -> tuple[Tree, Tree]:
    """New parameters and new optimizer state by Adam or by plain gradient descent."""
    if config.optimizer == "sgd":
        return jax.tree.map(lambda p, g: p - config.learning_rate * g, params, gradients), state
    count = state["count"] + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], gradients)
    square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, state["square"], gradients)

    def adam(p: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
        return p - config.learning_rate * (m / (1 - 0.9**count)) / (jnp.sqrt(s / (1 - 0.999**count)) + 1e-8)

    return jax.tree.map(adam, params, mean, square), {"count": count, "mean": mean, "square": square}


def step(config: Config) -> Callable[..., tuple[Tree, Tree, jax.Array]]:
    """The training step: `(params, state, tokens, targets)` to `(params, state, loss)`."""

    def train_step(params: Tree, state: Tree, tokens: jax.Array, targets: jax.Array) -> tuple[Tree, Tree, jax.Array]:
        value, gradients = jax.value_and_grad(lambda p: loss(config, p, tokens, targets))(params)
        return *update(config, params, state, gradients), value

    return train_step


def make_mesh(config: Config) -> Mesh:
    """A mesh with the axes `data` and `model` over the first devices that JAX sees."""
    size = config.data * config.model
    if len(jax.devices()) < size:
        raise ValueError(
            f"the mesh data={config.data}, model={config.model} needs {size} devices, JAX has {len(jax.devices())}; "
            f"on a CPU, set XLA_FLAGS=--xla_force_host_platform_device_count={size} before importing jax"
        )
    return Mesh(np.array(jax.devices()[:size]).reshape(config.data, config.model), ("data", "model"))


def in_shardings(config: Config, mesh: Mesh) -> tuple[Tree, ...]:
    """Shardings of the four arguments; None leaves the choice to propagation."""
    columns = NamedSharding(mesh, P(None, "model"))
    params = jax.tree.map(lambda _: None, shapes(config), is_leaf=lambda leaf: isinstance(leaf, tuple))
    for layer in params["layers"]:
        layer |= {"wq": columns, "wk": columns, "w1": columns}
    batch = NamedSharding(mesh, P("data", None))
    return params, None, batch, batch


def abstract_args(config: Config) -> tuple[Tree, ...]:
    """Shapes and types of the four arguments; allocates nothing."""
    params = jax.tree.map(
        lambda shape: jax.ShapeDtypeStruct(shape, jnp.float32),
        shapes(config),
        is_leaf=lambda leaf: isinstance(leaf, tuple),
    )
    state = {}
    if config.optimizer == "adam":
        state = {"count": jax.ShapeDtypeStruct((), jnp.int32), "mean": params, "square": params}
    tokens = jax.ShapeDtypeStruct((config.batch, config.sequence), jnp.int32)
    return params, state, tokens, tokens


def concrete_args(config: Config, seed: int = 0) -> tuple[Tree, ...]:
    """Arguments to run the step with: small random weights, zero optimizer state, random tokens."""
    random = np.random.default_rng(seed)

    def weight(leaf: jax.ShapeDtypeStruct) -> np.ndarray:
        if len(leaf.shape) == 1:
            return np.ones(leaf.shape, np.float32)
        return random.normal(0, leaf.shape[0] ** -0.5, leaf.shape).astype(np.float32)

    params, state, tokens, _ = abstract_args(config)
    text = random.integers(0, config.vocabulary, (tokens.shape[0], tokens.shape[1] + 1)).astype(np.int32)
    zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), state)
    return jax.tree.map(weight, params), zeros, text[:, :-1], text[:, 1:]


def lower(config: Config, mesh: Mesh | None = None) -> jax.stages.Lowered:
    """The training step lowered for `mesh`, by default the one of `make_mesh`."""
    mesh = make_mesh(config) if mesh is None else mesh
    return jax.jit(step(config), in_shardings=in_shardings(config, mesh)).lower(*abstract_args(config))


def main() -> None:
    """Print the lowered module; every field of `Config` is a flag."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    for field in fields(Config):
        parser.add_argument(f"--{field.name}", type=type(field.default), default=field.default)
    config = Config(**vars(parser.parse_args()))
    flag = f"--xla_force_host_platform_device_count={config.data * config.model}"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}"  # read when JAX first looks for devices
    print(lower(config).as_text())


if __name__ == "__main__":
    main()
