"""A training step of a small model, in which one thing at a time can be changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.ir.module import Module

LAYERS = 3
WIDTH, HIDDEN = 64, 256


@dataclass(frozen=True)
class Step:
    """What a training step is like.

    Attributes:
        batch: The size of the batch.
        data: The size of the first axis of the mesh.
        expert: Whether the batch is also split along a third axis of the mesh.
        constrains: Whether the hidden values are constrained.
        gathers: Whether an op gathers the hidden values.
        momentum: Whether the optimizer has a state.
        columns: Whether the first weights are split by columns, not by rows.
        donates: Whether the weights are donated.
        narrow: Whether the second product of a layer is one of bf16.
        counts: Whether the step also returns the norm of every gradient.
    """

    batch: int = 32
    data: int = 4
    expert: bool = False
    constrains: bool = True
    gathers: bool = False
    momentum: bool = False
    columns: bool = True
    donates: bool = True
    narrow: bool = False
    counts: bool = False


def lowered(step: Step) -> Module:
    """The program of a training step over a mesh of names and sizes."""
    axes = {"data": step.data, "model": 2} | ({"expert": 2} if step.expert else {})

    def block(layer: Any, x: Any) -> Any:
        with jax.named_scope("mlp"):
            h = jnp.tanh(x @ layer["w1"])
            if step.constrains:
                h = jax.lax.with_sharding_constraint(h, P("data", "model"))
            if step.gathers:
                h = h + jnp.cumsum(jax.lax.sort(h, dimension=1), axis=1)
            if step.narrow:
                return x + (h.astype("bfloat16") @ layer["w2"].astype("bfloat16")).astype("float32")
            return x + h @ layer["w2"]

    def loss(layers: Any, x: Any) -> Any:
        for number, layer in enumerate(layers):
            with jax.named_scope(f"layers_{number}"):
                x = block(layer, x)
        with jax.named_scope("loss"):
            return (x**2).mean()

    def train(layers: Any, state: Any, x: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(layers, x)
        if step.momentum:
            state = jax.tree.map(lambda old, grad: 0.9 * old + grad, state, grads)
            grads = state
        layers = jax.tree.map(lambda weight, grad: weight - 0.1 * grad, layers, grads)
        norms = (jax.tree.map(lambda grad: jnp.sqrt((grad**2).sum()), grads),) if step.counts else ()
        return layers, state, value, *norms

    layer = {
        "w1": jax.ShapeDtypeStruct((WIDTH, HIDDEN), "float32"),
        "w2": jax.ShapeDtypeStruct((HIDDEN, WIDTH), "float32"),
    }
    layers = [layer] * LAYERS
    first = P(None, "model") if step.columns else P("model", None)
    specs = [{"w1": first, "w2": None}] * LAYERS
    x = P(("data", "expert")) if step.expert else P("data")
    return pyshardy.load(
        train,
        layers,
        layers if step.momentum else (),
        jax.ShapeDtypeStruct((step.batch, WIDTH), "float32"),
        mesh=axes,
        in_shardings=(specs, None, x),
        donate_argnums=(0,) if step.donates else (),
    )
