"""A training step in flax.linen, with logical axes and rules."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training import train_state
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
rules = (("batch", "data"), ("embed", None), ("mlp", "model"))
init = nn.initializers.lecun_normal()


class MLP(nn.Module):
    @nn.compact
    def __call__(self, x):
        h = nn.Dense(2048, kernel_init=nn.with_logical_partitioning(init, ("embed", "mlp")), name="wi")(x)
        h = nn.with_logical_constraint(nn.gelu(h), ("batch", "mlp"))
        return nn.Dense(512, kernel_init=nn.with_logical_partitioning(init, ("mlp", "embed")), name="wo")(h)


class Decoder(nn.Module):
    @nn.compact
    def __call__(self, x):
        for layer in range(4):
            x = x + MLP(name=f"layers_{layer}")(x)
        return x


model = Decoder()
x = np.ones((256, 512), "float32")


def create(key):
    return train_state.TrainState.create(apply_fn=model.apply, params=model.init(key, x)["params"], tx=optax.adam(1e-3))


@jax.jit
def train_step(state, batch):
    def loss_fn(params):
        return jnp.mean((state.apply_fn({"params": params}, batch) - batch) ** 2)

    loss, gradients = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=gradients), loss


with jax.set_mesh(mesh), nn.logical_axis_rules(rules):
    specs = nn.get_partition_spec(jax.eval_shape(create, jax.random.key(0)))
    state = jax.jit(create, out_shardings=nn.logical_to_mesh_sharding(specs, mesh, rules))(jax.random.key(0))
    state, loss = train_step(state, jax.device_put(x, NamedSharding(mesh, P("data"))))
    print("loss", loss)
