"""Training steps of dense models."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from support.steps import descent_and_loss

from .base import constant, integers, normal, program, uniform, weight


@program(data=4, model=2)
def mlp_training(mesh: Mesh) -> tuple[Any, ...]:
    """Three dense layers and momentum; the first weight by columns, the second by rows, the rest left open."""

    def loss(params, x, y):
        for w, b in params[:-1]:
            x = jax.nn.relu(x @ w + b)
        w, b = params[-1]
        return jnp.mean((x @ w + b - y) ** 2)

    def step(params, momentum, x, y):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
        return jax.tree.map(lambda p, m: p - 0.1 * m, params, momentum), momentum, value

    params = [(weight(rows, columns), constant(0, columns)) for rows, columns in ((32, 64), (64, 64), (64, 8))]
    momentum = jax.tree.map(lambda leaf: constant(0, *leaf.shape), params)
    specs = [(P(None, "model"), None), (P("model", None), None), (None, None)]
    return step, (params, momentum, normal(16, 32), normal(16, 8)), (specs, None, P("data"), P("data"))


@program(data=2, model=4)
def embedding_training(mesh: Mesh) -> tuple[Any, ...]:
    """Bags of words: a gather from a table split by rows, its gradient by scatter-add, counts by segment sums."""

    def loss(table, output, tokens, targets):
        logits = table[tokens].mean(axis=1) @ output
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), targets[:, None], axis=1))

    def step(table, output, tokens, targets, rows, delta):
        value, (d_table, d_output) = jax.value_and_grad(loss, argnums=(0, 1))(table, output, tokens, targets)
        counts = jax.ops.segment_sum(jnp.ones(tokens.size), tokens.reshape(-1), num_segments=table.shape[0])
        table = table - 0.1 * d_table / (1 + counts)[:, None]
        table = table.at[rows].add(delta).at[0].set(0.0)  # a sparse update, and the padding row stays zero
        largest = jnp.full(4, -1e3).at[targets % 4].max(targets.astype(jnp.float32))
        return table, output - 0.1 * d_output, value, counts, largest

    inputs = (
        normal(64, 32),
        weight(32, 16),
        integers(8, 6, high=64),
        integers(8, high=16),
        integers(10, high=64),
        normal(10, 32),
    )
    rows = P("model", None)
    return step, inputs, (rows, None, P("data"), None, None, None), (rows, None, None, None, P())


@program(data=8, donate=(0, 1))
def zero_optimizer(mesh: Mesh) -> tuple[Any, ...]:
    """Adam as in ZeRO: replicated parameters, optimizer state and gradients split over the data axis; donated."""
    split = NamedSharding(mesh, P("data"))

    def loss(params, x, y):
        return jnp.mean((jnp.tanh(x @ params["w1"]) @ params["w2"] - y) ** 2)

    def step(params, state, x, y):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        gradients = jax.lax.with_sharding_constraint(gradients, split)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], gradients)
        square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, state["square"], gradients)
        params = jax.tree.map(lambda p, m, s: p - 0.01 * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
        return params, {"mean": mean, "square": square}, value

    params = {"w1": weight(16, 64), "w2": weight(64, 8)}
    state = {
        "mean": jax.tree.map(lambda leaf: normal(*leaf.shape, scale=0.1), params),
        "square": jax.tree.map(lambda leaf: uniform(*leaf.shape, low=0.5), params),
    }
    in_specs = ({"w1": P(), "w2": P()}, P("data"), P("data"), P("data"))
    return step, (params, state, normal(16, 16), normal(16, 8)), in_specs, (P(), P("data"), P())


@program(data=4, model=2)
def contrastive_training(mesh: Mesh) -> tuple[Any, ...]:
    """Two encoders and all pairs of a batch, as in CLIP: both sides of one product are split over the same axis."""

    def encode(w, x):
        x = jnp.tanh(x @ w)
        return x / jnp.linalg.norm(x, axis=-1, keepdims=True)

    def loss(params, images, texts):
        logits = jnp.exp(params["scale"]) * encode(params["image"], images) @ encode(params["text"], texts).T
        rows, columns = jax.nn.log_softmax(logits, axis=0), jax.nn.log_softmax(logits, axis=1)
        return -jnp.mean(jnp.diagonal(rows) + jnp.diagonal(columns)) / 2

    params = {"image": weight(24, 16), "text": weight(12, 16), "scale": constant(1.0)}
    specs = {"image": P(None, "model"), "text": P(None, "model"), "scale": None}
    return descent_and_loss(loss), (params, normal(16, 24), normal(16, 12)), (specs, P("data"), P("data"))


@program(data=4, model=2)
def microbatches(mesh: Mesh) -> tuple[Any, ...]:
    """Gradients summed over four microbatches by a scan, each microbatch split over the data axis."""

    def loss(w, x, y):
        return jnp.mean((jax.nn.gelu(x @ w[0]) @ w[1] - y) ** 2)

    def step(w, x, y):
        def accumulate(total, batch):
            batch = jax.lax.with_sharding_constraint(batch, NamedSharding(mesh, P("data")))
            value, gradients = jax.value_and_grad(loss)(w, *batch)
            return jax.tree.map(jnp.add, total, gradients), value

        batches = (x.reshape(4, 8, -1), y.reshape(4, 8, -1))
        total, values = jax.lax.scan(accumulate, jax.tree.map(jnp.zeros_like, w), batches)
        return jax.tree.map(lambda p, g: p - 0.1 * g / 4, w, total), values

    inputs = ((weight(16, 32), weight(32, 8)), normal(32, 16), normal(32, 8))
    return step, inputs, ((P(None, "model"), None), None, None)


@program(data=4, model=2)
def per_example_gradients(mesh: Mesh) -> tuple[Any, ...]:
    """Gradients clipped example by example, as for differential privacy: vmap of grad, with a constraint inside."""

    def loss(w, x, y):
        hidden = jax.lax.with_sharding_constraint(jnp.tanh(x @ w["hidden"]), NamedSharding(mesh, P("model")))
        return jnp.sum((hidden @ w["out"] - y) ** 2)

    def step(w, x, y):
        gradients = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0), spmd_axis_name="data")(w, x, y)
        squares = jax.tree.map(lambda g: jnp.sum(g * g, axis=tuple(range(1, g.ndim))), gradients)
        clip = jnp.minimum(1.0, jax.lax.rsqrt(1e-6 + sum(jax.tree.leaves(squares))))
        return jax.tree.map(lambda p, g: p - 0.1 * jnp.tensordot(clip, g, axes=1), w, gradients)

    w = {"hidden": weight(16, 32), "out": weight(32, 1)}
    return step, (w, normal(8, 16), normal(8, 1)), (None, P("data"), None)


@program(x=2, y=2, z=2)
def einsum_many_dims(mesh: Mesh) -> tuple[Any, ...]:
    """Contractions of tensors with many dimensions, mapped and differentiated."""

    def scores(q, k, v, bias):
        logits = jnp.einsum("bsghd,btgd->bghst", q, k) + bias
        mixed = jnp.einsum("bghst,btgd->bsghd", jax.nn.softmax(logits), v)
        return jnp.einsum("bsghd,bsghd,ghd->", mixed, q, bias[0, :, :, :4, 0])

    def run(q, k, v, bias):
        values, gradients = jax.vmap(jax.value_and_grad(scores, argnums=(0, 1)), in_axes=(0, 0, 0, None))(q, k, v, bias)
        outer = jnp.einsum("nbsghd,nbsghe->nghde", gradients[0], q)
        return values, gradients, outer, jnp.trace(outer, axis1=-2, axis2=-1)

    inputs = (normal(3, 2, 4, 2, 2, 4), normal(3, 2, 6, 2, 4), normal(3, 2, 6, 2, 4), normal(2, 2, 2, 4, 6))
    return run, inputs, (P(None, "x", None, "y", "z"), P(None, None, "y"), None, None)


@program(data=4, model=2)
def custom_derivatives(mesh: Mesh) -> tuple[Any, ...]:
    """A straight-through quantizer (custom_vjp) and a stable softplus (custom_jvp) in one gradient."""

    @jax.custom_vjp
    def quantize(x):
        return jnp.round(x * 8) / 8

    quantize.defvjp(lambda x: (quantize(x), jnp.abs(x) < 1), lambda inside, g: (jnp.where(inside, g, 0.0),))

    @jax.custom_jvp
    def softplus(x):
        return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))

    softplus.defjvps(lambda g, _, x: g * jax.nn.sigmoid(x))

    @partial(jax.grad, has_aux=True)
    def gradient(params, x):
        hidden = softplus(x @ quantize(params["w"]) + params["b"])
        return jnp.mean(hidden**2), hidden

    params = {"w": weight(16, 32), "b": normal(32, scale=0.1)}
    return gradient, (params, normal(8, 16)), ({"w": P(None, "model"), "b": None}, P("data"))
