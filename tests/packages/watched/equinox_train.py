import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
whole, split = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
model = eqx.filter_shard(eqx.nn.MLP(64, 64, 256, 2, key=jax.random.key(0)), whole)
optimizer = optax.adam(1e-3)
state = eqx.filter_shard(optimizer.init(eqx.filter(model, eqx.is_array)), whole)


@eqx.filter_jit
def train_step(model, state, x):
    x = eqx.filter_shard(x, split)

    @eqx.filter_value_and_grad
    def loss_fn(model):
        return jnp.mean((jax.vmap(model)(x) - x) ** 2)

    loss, gradients = loss_fn(model)
    updates, state = optimizer.update(gradients, state, eqx.filter(model, eqx.is_array))
    return eqx.apply_updates(model, updates), state, loss


model, state, loss = train_step(model, state, np.ones((32, 64), "float32"))
print("loss", loss)
