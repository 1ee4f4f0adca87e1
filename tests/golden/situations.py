"""A dozen situations in which people ask why: JAX programs, written as modules that the golden tests read.

PYTHONPATH=tests python -m golden.situations     lowers them again, with eight devices and flax installed

The modules are kept, so that the texts are the same with every version of JAX, and without flax.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

PROGRAMS = Path(__file__).parent / "programs"
_PATH = re.compile(r'"[^"\n]*/([^"/\n]+\.py)"')


class Situation(NamedTuple):
    """A program to lower.

    Attributes:
        name: What it is called.
        lower: Lowers it.
        asks: The values to explain.
    """

    name: str
    lower: Callable[[], Any]
    asks: tuple[str, ...]


SITUATIONS: list[Situation] = []


def situation(*asks: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Adds a program under the name of its function."""

    def add(lower: Callable[[], Any]) -> Callable[[], Any]:
        SITUATIONS.append(Situation(lower.__name__, lower, asks))
        return lower

    return add


def on(**axes: int) -> Callable[..., Any]:
    """What makes shardings on a mesh of these axes."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()[:8]).reshape(*axes.values()), tuple(axes))
    return lambda *spec: NamedSharding(mesh, PartitionSpec(*spec))


def f32(*shape: int) -> Any:
    import jax

    return jax.ShapeDtypeStruct(shape, "float32")


@situation("params['layers'][1]['w2']", "result")
def megatron_mlp() -> Any:
    """Two layers, weights by columns and then by rows: one sum per layer."""
    import jax

    def mlp(layer, x):
        h = jax.nn.relu(x @ layer["w1"])
        return h @ layer["w2"]

    def model(params, x):
        for layer in params["layers"]:
            x = mlp(layer, x)
        return x

    s = on(data=4, model=2)
    layer = {"w1": f32(1024, 4096), "w2": f32(4096, 1024)}
    spec = {"w1": s(None, "model"), "w2": s("model", None)}
    jitted = jax.jit(model, in_shardings=({"layers": [spec, spec]}, s("data")))
    return jitted.lower({"layers": [layer, layer]}, f32(256, 1024))


@situation("params['layers'][0]['w2']")
def wrong_annotation() -> Any:
    """The same, but the second weight is on the axis of the batch."""
    import jax

    def mlp(layer, x):
        h = jax.nn.relu(x @ layer["w1"])
        return h @ layer["w2"]

    def model(params, x):
        for layer in params["layers"]:
            x = mlp(layer, x)
        return x

    s = on(data=4, model=2)
    layer = {"w1": f32(1024, 4096), "w2": f32(4096, 1024)}
    spec = {"w1": s(None, "model"), "w2": s("data", None)}
    jitted = jax.jit(model, in_shardings=({"layers": [spec, spec]}, s("data")))
    return jitted.lower({"layers": [layer, layer]}, f32(256, 1024))


@situation("momentum['w']", "result[0]['w']")
def zero_update() -> Any:
    """A weight that all devices hold, and momentum that is split."""
    import jax

    def loss(params, x, y):
        return ((x @ params["w"] - y) ** 2).mean()

    def step(params, momentum, x, y):
        gradient = jax.grad(loss)(params, x, y)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
        return jax.tree.map(lambda p, m: p - 0.1 * m, params, momentum), momentum

    s = on(data=8)
    whole, split = {"w": s(None, None)}, {"w": s("data", None)}
    jitted = jax.jit(step, in_shardings=(whole, split, s("data"), s("data")), out_shardings=(whole, split))
    w = {"w": f32(512, 512)}
    return jitted.lower(w, w, f32(64, 512), f32(64, 512))


@situation("params['wo']", "softmax")
def attention() -> Any:
    """Batch parallelism, and heads that nobody splits."""
    import jax
    import jax.numpy as jnp

    def attention(params, x):
        batch, length, width = x.shape
        q, k, v = ((x @ params[name]).reshape(batch, length, 8, width // 8) for name in ("wq", "wk", "wv"))
        with jax.named_scope("softmax"):
            weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
        return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, width) @ params["wo"]

    s = on(data=4, model=2)
    params = {name: f32(256, 256) for name in ("wq", "wk", "wv", "wo")}
    jitted = jax.jit(attention, in_shardings=(None, s("data")))
    return jitted.lower(params, f32(16, 128, 256))


@situation("params['up']", "dispatch")
def moe_dispatch() -> Any:
    """Tokens by batch, experts by another axis: an exchange at both ends."""
    import jax
    import jax.numpy as jnp

    def layer(params, x, choice):
        with jax.named_scope("dispatch"):
            sent = jnp.einsum("gtec,gtd->egcd", choice, x)
        sent = jax.lax.with_sharding_constraint(sent, s("expert"))
        h = jax.nn.relu(jnp.einsum("egcd,edh->egch", sent, params["up"]))
        out = jnp.einsum("egch,ehd->egcd", h, params["down"])
        with jax.named_scope("combine"):
            return jnp.einsum("gtec,egcd->gtd", choice, out)

    s = on(expert=8)
    spec = {"up": s("expert"), "down": s("expert")}
    jitted = jax.jit(layer, in_shardings=(spec, s("expert"), s("expert")), out_shardings=s("expert"))
    return jitted.lower({"up": f32(8, 64, 128), "down": f32(8, 128, 64)}, f32(8, 32, 64), f32(8, 32, 8, 8))


@situation("norm", "params['in']")
def sequence_parallel() -> Any:
    """The sequence is split between blocks, the hidden dimension inside them."""
    import jax

    def block(params, x):
        with jax.named_scope("norm"):
            x = x / (1 + abs(x))
        h = jax.nn.relu(x @ params["in"])
        return jax.lax.with_sharding_constraint(h @ params["out"], s("data", "model", None))

    s = on(data=2, model=4)
    spec = {"in": s(None, "model"), "out": s("model", None)}
    jitted = jax.jit(block, in_shardings=(spec, s("data", "model", None)))
    return jitted.lower({"in": f32(128, 512), "out": f32(512, 128)}, f32(8, 64, 128))


@situation("result", "reshape")
def reshape_with_sub_axes() -> Any:
    """An axis of eight goes to a dimension of four, and half of it on to the next."""
    import jax

    def split(x):
        return x.reshape(4, 6, 16)

    s = on(x=8)
    return jax.jit(split, in_shardings=s("x")).lower(f32(24, 16))


@situation("result", "tanh")
def closed_output() -> Any:
    """The output is to be whole, so that all is gathered at the end."""
    import jax
    import jax.numpy as jnp

    def forward(x, w):
        return jnp.tanh(x @ w)

    s = on(data=4, model=2)
    jitted = jax.jit(forward, in_shardings=(s("data"), s(None, "model")), out_shardings=s(None, None))
    return jitted.lower(f32(512, 256), f32(256, 1024))


PRIORITIES = """\
sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func public @main(%x: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}p0, {?}]>} loc("x"),
                       %w: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"data"}p1]>} loc("w"))
    -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("jit(f)/mlp/dot_general"("model.py":7:4))
  %1 = stablehlo.tanh %0 : tensor<64x64xf32> loc("jit(f)/mlp/tanh"("model.py":8:4))
  return %1 : tensor<64x64xf32>
}
"""


@situation("dot_general", "w")
def priorities() -> Any:
    """Two inputs ask for one axis; the turn of the batch comes first. JAX has no priorities: this is a module."""
    return PRIORITIES


@situation("split", "w")
def fused_qkv() -> Any:
    """One weight for three projections: its slices do not fall on the shards."""
    import jax
    import jax.numpy as jnp

    def attention(x, w):
        qkv = x @ w
        with jax.named_scope("split"):
            q, k, v = jnp.split(qkv, 3, axis=-1)
        return jnp.tanh(q * k) + v

    s = on(data=2, model=4)
    return jax.jit(attention, in_shardings=(s("data"), s(None, "model"))).lower(f32(128, 256), f32(256, 768))


@situation("params['w2']", "result")
def scan_over_layers() -> Any:
    """Weights of all layers in one array; the loop takes a layer at a time."""
    import jax

    def layer(x, params):
        h = jax.nn.relu(x @ params["w1"])
        return h @ params["w2"], None

    def model(params, x):
        return jax.lax.scan(layer, x, params)[0]

    s = on(data=4, model=2)
    spec = {"w1": s(None, None, "model"), "w2": s(None, "model", None)}
    jitted = jax.jit(model, in_shardings=(spec, s("data")))
    return jitted.lower({"w1": f32(12, 256, 1024), "w2": f32(12, 1024, 256)}, f32(64, 256))


@situation("params['params']['up']['kernel']", "down")
def flax_model() -> Any:
    """Two dense layers of flax, under the names of its modules."""
    import flax.linen as nn
    import jax

    class Mlp(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.relu(nn.Dense(512, name="up")(x))
            return nn.Dense(128, name="down")(x)

    s = on(data=4, model=2)
    model, x = Mlp(), f32(64, 128)
    params = jax.eval_shape(model.init, jax.random.key(0), x)
    spec = {"up": {"kernel": s(None, "model"), "bias": s("model")}, "down": {"kernel": s("model"), "bias": s()}}

    def forward(params, x):
        return model.apply(params, x)

    return jax.jit(forward, in_shardings=({"params": spec}, s("data"))).lower(params, x)


def text_of(lowered: Any) -> str:
    """The module of a lowered program, with places that name files and no folders."""
    text = lowered if isinstance(lowered, str) else lowered.as_text(debug_info=True)
    return _PATH.sub(r'"\1"', text)


def main() -> None:
    import jax

    jax.config.update("jax_traceback_in_locations_limit", 1)
    for name, lower, _ in SITUATIONS:
        (PROGRAMS / f"{name}.mlir").write_text(text_of(lower()))


if __name__ == "__main__":
    main()
