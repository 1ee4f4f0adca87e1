import equinox as eqx
import haliax as hax
import haliax.nn as hnn
import jax
import numpy as np
import optax
from haliax.jax_utils import named_call
from jax.sharding import AxisType

Batch, Embed, Mlp, Layers = hax.make_axes(batch=32, embed=64, mlp=256, layers=4)
mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
rules = {"batch": "data", "mlp": "model"}


class Block(eqx.Module):
    up: hnn.Linear
    down: hnn.Linear

    @staticmethod
    def init(*, key):
        one, two = jax.random.split(key)
        return Block(hnn.Linear.init(Embed, Mlp, key=one), hnn.Linear.init(Mlp, Embed, key=two))

    @named_call
    def __call__(self, x):
        return x + self.down(hax.nn.relu(self.up(x)))


class Model(eqx.Module):
    blocks: hnn.Stacked[Block]

    def __call__(self, x):
        return self.blocks.fold(x)


optimizer = optax.adam(1e-3)


@hax.named_jit(axis_resources=rules)
def init(key):
    model = Model(hnn.Stacked.init(Layers, Block)(key=jax.random.split(key, Layers.size)))
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
    x = hax.shard(hax.named(np.ones((32, 64), "float32"), (Batch, Embed)))
    model, state, loss = train_step(model, state, x)
    print("loss", loss)
