"""shard_map: device-local code with collectives, over all axes or some of them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from .base import normal, program, weight


@program(x=4, y=2, mesh_dependent=True)
def manual_collectives(mesh: Mesh) -> tuple[Any, ...]:
    """Every axis manual, every collective used once."""

    def body(a, b):
        total = lax.psum(a @ b, "y")
        rows = lax.all_gather(total, "x", tiled=True)
        part = lax.psum_scatter(rows, "x", scatter_dimension=0, tiled=True)
        size = lax.axis_size("x")
        turned = lax.ppermute(part, "x", [(i, (i + 1) % size) for i in range(size)])
        swapped = lax.all_to_all(turned, "x", split_axis=1, concat_axis=0, tiled=True)
        return turned + lax.axis_index("x"), swapped, lax.pmax(a.max(), ("x", "y"))

    manual = jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=(P("x"), P(None, "x"), P()))
    return (lambda a, b: manual(jnp.sin(a), b)), (normal(8, 16), normal(16, 8)), (P("x", "y"), None)


@program(data=4, model=2)
def manual_partial(mesh: Mesh) -> tuple[Any, ...]:
    """Only `model` manual: the body's sums over it are explicit, `data` stays with propagation; with gradient."""

    def body(x, w1, w2):
        hidden = lax.with_sharding_constraint(jax.nn.relu(x @ w1), P("data"))
        return lax.psum(hidden @ w2, "model")

    manual = jax.shard_map(
        body,
        mesh=mesh,
        axis_names={"model"},
        in_specs=(P(), P(None, "model"), P("model", None)),
        out_specs=P(),
    )

    def loss(w, x):
        return jnp.mean(manual(x, *w) ** 2)

    return jax.value_and_grad(loss), ((weight(16, 32), weight(32, 8)), normal(8, 16)), (None, P("data"))


@program(x=2, y=2, z=2, mesh_dependent=True)
def manual_nested(mesh: Mesh) -> tuple[Any, ...]:
    """One manual region in another, each with an axis of its own, and a third axis left automatic."""

    def inner(a):
        return lax.psum(a, "y") * 2

    def outer(a):
        a = jax.shard_map(inner, axis_names={"y"}, in_specs=P(None, "y"), out_specs=P())(a + 1)
        return lax.pmean(jnp.tanh(a), "x")

    manual = jax.shard_map(outer, mesh=mesh, axis_names={"x"}, in_specs=P("x"), out_specs=P())
    return (lambda a: manual(a * a)), (normal(8, 8, 4),), (P(None, None, "z"),)


@program(data=2, ring=4)
def ring_attention(mesh: Mesh) -> tuple[Any, ...]:
    """Attention over a split sequence: keys and values go round a ring while softmax is kept up to date; gradient."""
    size = mesh.shape["ring"]

    def body(q, k, v):
        def turn(carry, _):
            k, v, top, total, mixed = carry
            logits = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
            new_top = jnp.maximum(top, logits.max(-1))
            weights, shrink = jnp.exp(logits - new_top[..., None]), jnp.exp(top - new_top)
            total = total * shrink + weights.sum(-1)
            mixed = mixed * shrink[..., None] + jnp.einsum("bhqk,bkhd->bhqd", weights, v)
            k, v = (lax.ppermute(array, "ring", [(i, (i + 1) % size) for i in range(size)]) for array in (k, v))
            return (k, v, new_top, total, mixed), None

        mixed = jnp.zeros_like(q.swapaxes(1, 2))
        total = mixed[..., 0]
        (_, _, _, total, mixed), _ = lax.scan(turn, (k, v, total - 1e9, total, mixed), length=size)
        return (mixed / total[..., None]).swapaxes(1, 2)

    spec = P("data", "ring")
    manual = jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec)

    def loss(w, x):
        q, k, v = jnp.moveaxis((x @ w).reshape(*x.shape[:2], 3, 2, 4), 2, 0)
        return jnp.mean(manual(q, k, v) ** 2)

    return jax.value_and_grad(loss), (weight(8, 24), normal(2, 16, 8)), (None, spec)


@program(stage=4, data=2, mesh_dependent=True)
def pipeline_stages(mesh: Mesh) -> tuple[Any, ...]:
    """Layers spread over the stages of a pipeline, microbatches handed on by ppermute; `data` stays automatic."""
    size = mesh.shape["stage"]

    def body(w, x):
        stage = lax.axis_index("stage")

        def tick(carry, time):
            held, done = carry
            held = jnp.where(stage == 0, x[jnp.minimum(time, x.shape[0] - 1)], held)
            held = jnp.tanh(held @ w[0])
            ready = time - size + 1
            kept = jnp.where((stage == size - 1) & (ready >= 0), held, done[jnp.maximum(ready, 0)])
            done = lax.dynamic_update_index_in_dim(done, kept, jnp.maximum(ready, 0), 0)
            return (lax.ppermute(held, "stage", [(i, (i + 1) % size) for i in range(size)]), done), None

        start = lax.pcast((jnp.zeros_like(x[0]), jnp.zeros_like(x)), "stage", to="varying")
        (_, done), _ = lax.scan(tick, start, jnp.arange(x.shape[0] + size - 1))
        return lax.psum(jnp.where(stage == size - 1, done, 0), "stage")

    manual = jax.shard_map(body, mesh=mesh, axis_names={"stage"}, in_specs=(P("stage"), P()), out_specs=P())
    inputs = (normal(size, 16, 16, scale=0.25), normal(6, 4, 16))
    return manual, inputs, (P("stage"), P(None, "data"))
