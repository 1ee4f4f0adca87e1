"""Meshes other than one plain grid: device orders, several meshes, more axes, one axis."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from support.steps import descent_and_loss

from .base import normal, program, weight


@program(x=4, y=2, device_order=(7, 3, 0, 4, 1, 5, 6, 2), mesh_dependent=True)
def device_order(mesh: Mesh) -> tuple[Any, ...]:
    """A mesh whose devices are out of order, for propagation and for explicit collectives."""

    def body(a):
        size = lax.axis_size("x")
        return lax.all_gather(lax.ppermute(a, "x", [(i, (i + 1) % size) for i in range(size)]), "y", axis=1, tiled=True)

    manual = jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", None), check_vma=False)
    return (lambda a, w: manual(jnp.tanh(a @ w))), (normal(8, 16), weight(16, 8)), (P("x", "y"), P("y", None))


@program(data=4, model=2)
def several_meshes(mesh: Mesh) -> tuple[Any, ...]:
    """The same devices under three meshes, used one after another in one function."""
    across = Mesh(mesh.devices.reshape(mesh.devices.shape[::-1]), ("row", "column"))
    line = Mesh(mesh.devices.reshape(-1), ("all",))

    def run(x, w):
        x = jnp.tanh(x @ w)
        x = lax.with_sharding_constraint(x, NamedSharding(across, P("column", "row")))
        y = lax.with_sharding_constraint(x.T @ x, NamedSharding(line, P("all")))
        return x * 2, y.sum(axis=0)

    return run, (normal(8, 16), weight(16, 16)), (P("data"), P(None, "model"))


@program(x=4, y=2)
def explicit_types(mesh: Mesh) -> tuple[Any, ...]:
    """Shardings in the types of arrays (explicit axes), one result left unreduced before it is resharded."""
    mesh = Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Explicit,) * 2)

    def run(a, b):
        partial = jnp.dot(a, b, out_sharding=NamedSharding(mesh, P("x", None, unreduced={"y"})))
        whole = jax.sharding.reshard(partial + partial, NamedSharding(mesh, P("x", None)))
        turned = jax.sharding.reshard(jnp.tanh(whole), NamedSharding(mesh, P(None, "y")))
        return turned.reshape(4, 2, 8).sum(axis=0), whole.T

    return run, (normal(8, 16).on(mesh, "x", "y"), weight(16, 8).on(mesh, "y", None)), None


@program(data=2, fsdp=2, tensor=2)
def fully_sharded(mesh: Mesh) -> tuple[Any, ...]:
    """Three axes: weights split over `fsdp` and `tensor`, gathered before use; batches over `data` and `fsdp`."""

    def loss(params, x, y):
        for name in ("w1", "w2"):
            gathered = lax.with_sharding_constraint(params[name], NamedSharding(mesh, P(None, "tensor")))
            x = jax.nn.gelu(x @ gathered)
        return jnp.mean((x - y) ** 2)

    params = {"w1": weight(16, 32), "w2": weight(32, 16)}
    batch, split = P(("data", "fsdp")), P("fsdp", "tensor")
    return descent_and_loss(loss), (params, normal(8, 16), normal(8, 16)), (split, batch, batch), (split, None)


@program(data=2, model=4)
def sequence_parallel(mesh: Mesh) -> tuple[Any, ...]:
    """One axis for the sequence outside of the products and for the features inside them, as in Megatron."""

    def block(w, x):
        x = lax.with_sharding_constraint(x, NamedSharding(mesh, P("data", "model", None)))
        y = (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-3)
        hidden = jax.nn.gelu(jnp.einsum("bsd,dh->bsh", y, w["in"]))
        hidden = lax.with_sharding_constraint(hidden, NamedSharding(mesh, P("data", None, "model")))
        return lax.with_sharding_constraint(x + hidden @ w["out"], NamedSharding(mesh, P("data", "model", None)))

    def loss(w, x):
        return jnp.mean(block(w, block(w, x)) ** 2)

    w = {"in": weight(16, 32), "out": weight(32, 16)}
    return jax.value_and_grad(loss), (w, normal(4, 8, 16)), (None, P("data"))


@program(devices=8)
def one_axis(mesh: Mesh) -> tuple[Any, ...]:
    """One axis for everything, wanted by two dimensions of one value at once, and a scalar result."""

    def run(a, b):
        outer = jnp.einsum("i,j->ij", a, b)
        return outer + outer.T, jnp.outer(a, a).trace(), (a[:, None] > b).sum(0)

    return run, (normal(16), normal(16)), (P("devices"), P("devices"))
