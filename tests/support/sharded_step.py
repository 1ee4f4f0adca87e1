"""A program that runs one sharded step, for pages that read its dump by XLA."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))


def step(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    """Two layers."""
    return jnp.tanh(x @ w1) @ w2


columns, batch = NamedSharding(mesh, P(None, "model")), NamedSharding(mesh, P("data"))
arrays = (np.ones(shape, np.float32) for shape in ((32, 64), (64, 256), (256, 64)))
jax.jit(step, in_shardings=(batch, columns, None))(*arrays)
