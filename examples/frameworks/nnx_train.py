"""A training step in flax.nnx, whose weights know their axes."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
init = nnx.initializers.lecun_normal()


class MLP(nnx.Module):
    def __init__(self, rngs):
        self.wi = nnx.Linear(512, 2048, rngs=rngs, kernel_init=nnx.with_partitioning(init, (None, "model")))
        self.wo = nnx.Linear(2048, 512, rngs=rngs, kernel_init=nnx.with_partitioning(init, ("model", None)))

    def __call__(self, x):
        return x + self.wo(nnx.relu(self.wi(x)))


class Decoder(nnx.Module):
    def __init__(self, rngs):
        self.layers = nnx.List([MLP(rngs) for _ in range(4)])

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


@nnx.jit
def train_step(model, optimizer, x):
    loss, gradients = nnx.value_and_grad(lambda model: jnp.mean((model(x) - x) ** 2))(model)
    optimizer.update(model, gradients)
    return loss


with jax.set_mesh(mesh):
    model = Decoder(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    x = jax.device_put(np.ones((256, 512), "float32"), NamedSharding(mesh, P("data")))
    print("loss", train_step(model, optimizer, x))
