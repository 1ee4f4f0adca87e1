"""Programs that reach outside of plain JAX: flax, exported functions, callbacks, own partitioning rules."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.experimental.custom_partitioning import custom_partitioning
from jax.experimental.layout import Layout, with_layout_constraint
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from .base import Input, integers, normal, program, weight


def flax_missing() -> str | None:
    """Why flax cannot be used here, None if it can."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import optax  # noqa: F401
            from flax import linen, nnx  # noqa: F401
    except Exception as error:  # an old flax may fail in any way on a new jax
        return f"flax or optax cannot be imported: {error!r}"
    return None


def as_input(leaf: jax.ShapeDtypeStruct) -> Input:
    """Small values for a parameter that a library made: ones for vectors, so that norms keep their scale."""
    return weight(*leaf.shape) if len(leaf.shape) > 1 else Input(leaf.shape, leaf.dtype, lambda _: np.ones(leaf.shape))


@program(data=4, model=2, skip=flax_missing)
def flax_linen(mesh: Mesh) -> tuple[Any, ...]:
    """A flax.linen encoder with attention, layer norm and one constraint inside, trained by optax.adamw."""
    import flax.linen as nn
    import optax

    class Encoder(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(64, 32)(tokens)
            x = x + nn.MultiHeadDotProductAttention(num_heads=4)(nn.LayerNorm()(x))
            hidden = nn.gelu(nn.Dense(64)(nn.LayerNorm()(x)))
            hidden = jax.lax.with_sharding_constraint(hidden, NamedSharding(mesh, P("data", None, "model")))
            return nn.Dense(10)((x + nn.Dense(32)(hidden)).mean(axis=1))

    model = Encoder()
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3, eps=1e-3))

    def step(params, tokens, labels):
        def loss(params):
            logits = model.apply(params, tokens)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        value, gradients = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(gradients, optimizer.init(params), params)
        return optax.apply_updates(params, updates), state, value

    shapes = jax.eval_shape(model.init, jax.random.key(0), jax.ShapeDtypeStruct((8, 6), jnp.int32))
    params = jax.tree.map(as_input, shapes)
    return step, (params, integers(8, 6, high=64), integers(8, high=10)), (None, P("data"), P("data"))


@program(data=4, model=2, skip=flax_missing)
def flax_nnx(mesh: Mesh) -> tuple[Any, ...]:
    """A flax.nnx network with a convolution and batch norm, whose running statistics are updated."""
    from flax import nnx

    class Network(nnx.Module):
        def __init__(self, rngs):
            self.conv = nnx.Conv(3, 8, (3, 3), rngs=rngs)
            self.norm = nnx.BatchNorm(8, rngs=rngs)
            self.dense = nnx.Linear(8, 10, rngs=rngs)

        def __call__(self, x):
            return self.dense(nnx.relu(self.norm(self.conv(x))).mean((1, 2)))

    structure, shapes = nnx.split(nnx.eval_shape(lambda: Network(nnx.Rngs(0))))

    def step(state, x, y):
        network = nnx.merge(structure, state)
        value, gradients = nnx.value_and_grad(lambda network: jnp.mean((network(x) - y) ** 2))(network)
        return nnx.state(network), gradients, value

    return step, (jax.tree.map(as_input, shapes), normal(8, 8, 8, 3), normal(8, 10)), (None, P("data"), P("data"))


@program(x=4, y=2)
def exported_call(mesh: Mesh) -> tuple[Any, ...]:
    """A function exported with shardings of its own, called twice from another program."""
    rows = NamedSharding(mesh, P("x", None))
    part = jax.ShapeDtypeStruct((8, 16), jnp.float32)
    exported = jax.export.export(jax.jit(lambda a: jnp.tanh(a) * 2, in_shardings=rows, out_shardings=rows))(part)
    return (lambda a, w: exported.call(exported.call(a) @ w)), (normal(8, 16), weight(16, 16)), (None, P(None, "y"))


@program(data=4, model=2, in_process=True)
def callbacks(mesh: Mesh) -> tuple[Any, ...]:
    """Calls back into Python: with a result, without, in order, and for the sharding that a value was given."""

    def run(x, w):
        hidden = x @ w
        shape = jax.ShapeDtypeStruct(hidden.shape, hidden.dtype)
        jax.debug.callback(lambda value: None, hidden.sum())
        jax.debug.inspect_array_sharding(hidden, callback=lambda sharding: None)
        squashed = jax.pure_callback(np.tanh, shape, hidden)
        return io_callback(np.negative, shape, squashed, ordered=True) + hidden

    return run, (normal(8, 16), weight(16, 8)), (P("data"), P(None, "model"))


@program(data=4, model=2, in_process=True)
def partitioned_by_user(mesh: Mesh) -> tuple[Any, ...]:
    """A function with a sharding rule and a partitioner of its own."""

    @custom_partitioning
    def scaled(x, scale):
        return x * scale[None, :]

    def partition(mesh, args, result):
        return mesh, lambda x, scale: x * scale[None, :], result.sharding, tuple(arg.sharding for arg in args)

    scaled.def_partition(partition=partition, sharding_rule="rows columns, columns -> rows columns")
    inputs = (normal(8, 16), weight(16, 8), normal(8))
    return (lambda x, w, scale: scaled(x @ w, scale)), inputs, (P("data"), None, None)


@program(data=4, model=2)
def opaque_ops(mesh: Mesh) -> tuple[Any, ...]:
    """A composite op, whose decomposition is a function that nothing calls, and a constraint of memory layout."""

    def norm(x, *, epsilon):
        return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + epsilon)

    def run(x, w):
        y = with_layout_constraint(x @ w, Layout((1, 0)))
        return jax.lax.composite(norm, "example.rms_norm")(y, epsilon=np.float32(1e-6)) + 1, jnp.sinh(y)

    return run, (normal(8, 16), weight(16, 8)), (P("data"), P(None, "model"))
