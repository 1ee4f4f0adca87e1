"""A training script in plain JAX, which knows nothing of pyshardy: `python examples/train.py --steps 3`."""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

WIDTH, HIDDEN, LAYERS, BATCH = 512, 2048, 4, 256

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=3)
steps = parser.parse_args().steps

model_size = 2
mesh = jax.make_mesh((jax.device_count() // model_size, model_size), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def sharded(*spec):
    return NamedSharding(mesh, P(*spec))


def init(key):
    keys = jax.random.split(key, (LAYERS, 2))
    return [
        {
            "up": jax.random.normal(up, (WIDTH, HIDDEN)) * WIDTH**-0.5,
            "down": jax.random.normal(down, (HIDDEN, WIDTH)) * HIDDEN**-0.5,
        }
        for up, down in keys
    ]


def forward(params, x):
    for layer in params:
        x = x + jax.nn.gelu(x @ layer["up"]) @ layer["down"]
    return x


@jax.jit
def train_step(params, x, y):
    def loss_fn(params):
        return jnp.mean((forward(params, x) - y) ** 2)

    loss, gradients = jax.value_and_grad(loss_fn)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), loss


shardings = [{"up": sharded(None, "model"), "down": sharded("model")}] * LAYERS
params = jax.jit(init, out_shardings=shardings)(jax.random.key(0))
random = np.random.default_rng(0)
for step in range(steps):
    x, y = (jax.device_put(random.normal(size=(BATCH, WIDTH)).astype("float32"), sharded("data")) for _ in range(2))
    params, loss = train_step(params, x, y)
    print(f"step {step}: loss {loss:.3f}")
