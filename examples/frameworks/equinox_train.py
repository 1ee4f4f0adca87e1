"""A training step in equinox, whose batch is sharded."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def on(*spec):
    return NamedSharding(mesh, P(*spec))


class MLP(eqx.Module):
    wi: eqx.nn.Linear
    wo: eqx.nn.Linear

    def __init__(self, key):
        one, two = jax.random.split(key)
        self.wi = eqx.nn.Linear(512, 2048, key=one)
        self.wo = eqx.nn.Linear(2048, 512, key=two)

    def __call__(self, x):
        return x + self.wo(jax.nn.relu(self.wi(x)))


class Decoder(eqx.Module):
    layers: list

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def sharded(layer):
    """Columns and rows as in Megatron; equinox keeps weights as [out, in]."""
    weights = layer.wi.weight, layer.wo.weight
    split = [jax.device_put(weight, on(*spec)) for weight, spec in zip(weights, (("model",), (None, "model")))]
    return eqx.tree_at(lambda layer: (layer.wi.weight, layer.wo.weight), layer, split)


model = Decoder([sharded(MLP(key)) for key in jax.random.split(jax.random.key(0), 4)])
optimizer = optax.adam(1e-3)
state = optimizer.init(eqx.filter(model, eqx.is_array))


@eqx.filter_jit
def train_step(model, state, x):
    @eqx.filter_value_and_grad
    def loss_fn(model):
        return jnp.mean((jax.vmap(model)(x) - x) ** 2)

    loss, gradients = loss_fn(model)
    updates, state = optimizer.update(gradients, state, eqx.filter(model, eqx.is_array))
    return eqx.apply_updates(model, updates), state, loss


x = eqx.filter_shard(np.ones((256, 512), "float32"), on("data"))
model, state, loss = train_step(model, state, x)
print("loss", loss)
