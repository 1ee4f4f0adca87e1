"""Scripts of users, which know nothing of pyshardy."""

from __future__ import annotations

TRAIN = """
import sys
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
def on(*spec):
    return NamedSharding(mesh, P(*spec))
def init(key):
    one, two = jax.random.split(key)
    return {"up": jax.random.normal(one, (64, 256)), "down": jax.random.normal(two, (256, 64))}
params = jax.jit(init, out_shardings={"up": on(None, "model"), "down": on("model")})(jax.random.key(0))
x = jax.device_put(np.ones((32, 64), np.float32), on("data"))
def loss_fn(params, x):
    return jnp.mean((jax.nn.relu(x @ params["up"]) @ params["down"] - x) ** 2)
@jax.jit
def train_step(params, x):
    loss, gradients = jax.value_and_grad(loss_fn)(params, x)
    return jax.tree.map(lambda p, g: p - 0.001 * g, params, gradients), loss
try:
    for step in range(2):
        params, loss = train_step(params, x)
        print("step", step, flush=True)
    print("devices", len(jax.devices()), sys.argv[1:])
    print("to standard error", file=sys.stderr)
finally:
    print("clean-up")
sys.exit(3)
"""
PRODUCT_LINE = 15
"""The line of `loss_fn` that multiplies."""

STUBBORN = """
import time
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
try:
    jax.jit(lambda x: x + 1, in_shardings=NamedSharding(mesh, P("data")))(jnp.ones(8))
    print("ran")
except BaseException as error:
    print(type(error).__name__, flush=True)
time.sleep(100)
"""

UNREADABLE = """
import pathlib
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
jax.devices()
folder = pathlib.Path(jax.config.read("jax_dump_ir_to"))
folder.mkdir(parents=True, exist_ok=True)
bad = "module @jit_bad attributes {mhlo.num_partitions = 8 : i32} {\\n  this is no MLIR\\n}\\n"
(folder / "jax_ir9999_jit_bad_compile.mlir").write_text(bad)
@jax.jit
def good(x):
    return jnp.sum(x)
print(good(jax.device_put(jnp.ones(8), NamedSharding(mesh, P("data")))))
"""

AGAIN = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
@jax.jit
def f(w, x):
    return w + x.sum()
split, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
x = jax.device_put(jnp.ones(16), split)
f(jax.device_put(jnp.ones(8), whole), x)
f(jax.device_put(jnp.ones(8), split), x)
jax.clear_caches()
f(jax.device_put(jnp.ones(8), split), x)
"""

TWO_PROCESSES = """
import sys
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

port, number = sys.argv[1:]
jax.distributed.initialize(f"localhost:{port}", 2, int(number))
mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
split = NamedSharding(mesh, P("data"))
@jax.jit
def total(x):
    return jnp.sum(jax.lax.with_sharding_constraint(x, split) ** 2)
with open(f"{number}.txt", "w") as result:
    result.write(str(float(total(jnp.arange(16.0)))))
"""
