"""A training step in haliax, with named axes and a mapping of them."""

import equinox as eqx
import haliax as hax
import haliax.nn as hnn
import jax
import numpy as np
import optax
from haliax.jax_utils import named_call
from jax.sharding import AxisType

Batch, Embed, Mlp, Layers = hax.make_axes(batch=256, embed=512, mlp=2048, layers=4)
mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
rules = {"batch": "data", "mlp": "model"}


class MLP(eqx.Module):
    wi: hnn.Linear
    wo: hnn.Linear

    @staticmethod
    def init(*, key):
        one, two = jax.random.split(key)
        return MLP(hnn.Linear.init(Embed, Mlp, key=one), hnn.Linear.init(Mlp, Embed, key=two))

    @named_call
    def __call__(self, x):
        return x + self.wo(hax.nn.relu(self.wi(x)))


class Decoder(eqx.Module):
    layers: hnn.Stacked[MLP]

    def __call__(self, x):
        return self.layers.fold(x)


optimizer = optax.adam(1e-3)


@hax.named_jit(axis_resources=rules)
def init(key):
    model = Decoder(hnn.Stacked.init(Layers, MLP)(key=jax.random.split(key, Layers.size)))
    return model, optimizer.init(eqx.filter(model, eqx.is_array))


@hax.named_jit(axis_resources=rules)
def train_step(model, state, x):
    def loss_fn(model):
        return hax.mean((model(x) - x) ** 2).scalar()

    loss, gradients = eqx.filter_value_and_grad(loss_fn)(model)
    updates, state = optimizer.update(gradients, state)
    return eqx.apply_updates(model, updates), state, loss


with jax.set_mesh(mesh), hax.axis_mapping(rules):
    model, state = init(jax.random.key(0))
    x = hax.shard(hax.named(np.ones((256, 512), "float32"), (Batch, Embed)))
    model, state, loss = train_step(model, state, x)
    print("loss", loss)
