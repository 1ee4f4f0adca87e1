"""A training step of a PyTorch module, through torchax."""

import jax
import numpy as np
import optax
import torch
import torchax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from torchax import interop, train


class MLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wi = torch.nn.Linear(512, 2048)
        self.wo = torch.nn.Linear(2048, 512)

    def forward(self, x):
        return x + self.wo(torch.relu(self.wi(x)))


model = torch.nn.Sequential(MLP(), MLP(), MLP(), MLP())
env = torchax.default_env()
mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def sharded(name, value):
    spec = {"wi.weight": P("model"), "wo.weight": P(None, "model")}.get(name.split(".", 1)[1], P())
    return jax.device_put(value, NamedSharding(mesh, spec))


jittable = interop.JittableModule(model)
weights = env.t2j_copy(dict(jittable.params))
weights = interop.torch_view({name: sharded(name, value) for name, value in weights.items()})
x = jax.device_put(np.ones((256, 512), "float32"), NamedSharding(mesh, P("data")))
x = interop.torch_view(x)
optimizer = optax.adam(1e-3)
opt_state = interop.call_jax(optimizer.init, weights)


def forward(weights, buffers, args):
    return jittable.functional_call("forward", weights, buffers, args)


step = train.make_train_step(forward, lambda out, label: torch.nn.functional.mse_loss(out, label), optimizer)


def train_step(weights, opt_state, x):
    return step(weights, {}, opt_state, x, x)


train_step = interop.jax_jit(train_step)
loss, weights, opt_state = train_step(weights, opt_state, x)
print("loss", loss.jax())
