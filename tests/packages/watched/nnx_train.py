import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


class MLP(nnx.Module):
    def __init__(self, rngs):
        init = nnx.initializers.lecun_normal()
        self.up = nnx.Linear(64, 256, rngs=rngs, kernel_init=nnx.with_partitioning(init, (None, "model")))
        self.down = nnx.Linear(256, 64, rngs=rngs, kernel_init=nnx.with_partitioning(init, ("model", None)))

    def __call__(self, x):
        return self.down(nnx.relu(self.up(x)))


@nnx.jit
def create():
    model = MLP(nnx.Rngs(0))
    state = nnx.state(model)
    nnx.update(model, jax.lax.with_sharding_constraint(state, nnx.get_partition_spec(state)))
    return model


with jax.set_mesh(mesh):
    model = create()
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit
    def train_step(model, optimizer, x):
        loss, gradients = nnx.value_and_grad(lambda model: jnp.mean((model(x) - x) ** 2))(model)
        optimizer.update(model, gradients)
        return loss

    x = jax.device_put(np.ones((32, 64), "float32"), NamedSharding(mesh, P("data")))
    print("loss", train_step(model, optimizer, x))
