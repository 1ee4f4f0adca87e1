"""Programs with one mistake each, in how values are laid out: kernels, batches, caches, vocabularies."""

from __future__ import annotations

from checkup.programs import HEAD, Case

_KERNEL = (
    HEAD
    + """\
ROWS = P(("data", "model"))


def call(name, shape, *given):
    return jax.ffi.ffi_call(name, jax.ShapeDtypeStruct(shape, given[0].dtype))(*given)


@jax.custom_vjp
def scan(u, decay):
    return call("scan", u.shape, u, decay)


def forward(u, decay):
    y = scan(u, decay)
    return y, (u, decay, y)


def backward(saved, g):
    u, decay, y = saved
    du = call("scan_gradient", u.shape, g, u, decay, y)
    return du, jnp.sum(du * u, axis=(0, 1))


scan.defvjp(forward, backward)


def layer(p, decay, x):
    h = x @ p["up"]
    h = jax.shard_map(scan, mesh=mesh, in_specs=(ROWS, P()), out_specs=ROWS, check_vma=False)(h, decay)
    return constrain(x + h @ p["down"], ROWS)


def loss(layers, decay, x):
    for p in layers:
        x = layer(p, decay, x)
    return (x.astype(jnp.float32) ** 2).mean()


def update(layers, decay, x):
    return jax.tree.map(lambda p, g: p - g, layers, jax.grad(loss)(layers, decay, x))


def make():
    return {"up": array((1024, 2048), P()), "down": array((2048, 1024), P())}


step = jax.jit(update, donate_argnames=("layers",))
arguments = [make() for _ in range(2)], array((2048,), P()), array((64, 512, 1024), ROWS)
"""
)
_TIME = (
    HEAD
    + """\
def loss(w, xs):
    def body(h, x):
        h = jnp.tanh(h @ w + x)
        return h, h.mean()

    first = jnp.zeros(xs.shape[1:], xs.dtype)
    return jax.lax.scan(body, first, xs)[1].astype(jnp.float32).mean()


def update(w, xs):
    return w - jax.grad(loss)(w, xs)


step = jax.jit(update, donate_argnames=("w",), out_shardings=on(P()))
w = array((1024, 1024), P(), jnp.bfloat16)
arguments = w, array((128, 4096, 1024), P(None, ("data", "model")), jnp.bfloat16)
"""
)
_IDLE = (
    HEAD
    + """\
def loss(layers, x):
    for p in layers:
        x = x + jnp.tanh(x @ p["up"]) @ p["down"]
    return (x.astype(jnp.float32) ** 2).mean()


def update(layers, x):
    return jax.tree.map(lambda p, g: p - g, layers, jax.grad(loss)(layers, x))


def make():
    up, down = P(None, "model"), P("model", None)
    return {"up": array((2048, 8192), up, jnp.bfloat16), "down": array((8192, 2048), down, jnp.bfloat16)}


layers = [make() for _ in range(2)]
state = [{name: one.sharding for name, one in layer.items()} for layer in layers]
step = jax.jit(update, out_shardings=state, donate_argnames=("layers",))
x = array((16384, 2048), P("data"), jnp.bfloat16)
arguments = layers, x
"""
)
_PAGES = (
    HEAD
    + """\
def write(pool, new, pages, place):
    return pool.at[pages[:, 0], place].set(new)


def decode(params, pools, x, pages, place):
    filled = []
    for p, pool in zip(params, pools):
        new = (x @ p["kv"]).reshape(256, 8, 128)
        pool = write(pool, new, pages, place)
        past = pool[pages].reshape(256, 1024, 8, 128)
        q = (x @ p["q"]).reshape(256, 8, 128)
        weights = jax.nn.softmax(jnp.einsum("bhk,bshk->bhs", q, past))
        x = x + jnp.einsum("bhs,bshk->bhk", weights, past).reshape(256, 1024) @ p["o"]
        filled.append(pool)
    return x, filled


def make():
    columns, rows = P(None, "model"), P("model", None)
    square = 1024, 1024
    return {name: array(square, rows if name == "o" else columns, jnp.bfloat16) for name in ("q", "kv", "o")}


heads = P(None, None, "model")
pools = [array((4096, 64, 8, 128), heads, jnp.bfloat16) for _ in range(2)]
step = jax.jit(decode, out_shardings=(None, [on(heads)] * 2), donate_argnames=("pools",))
tokens = [array(shape, P("data"), kind) for shape, kind in (((256, 1024), jnp.bfloat16), ((256, 16), jnp.int32), ((256,), jnp.int32))]
arguments = [make(), make()], pools, *tokens
"""
)
_VOCABULARY = (
    HEAD
    + """\
VOCABULARY = 50304
sizes = {"data": 4, "model": 2}


def fitting(shape, *axes):
    return array(shape, P(*(axis if axis and size % sizes[axis] == 0 else None for axis, size in zip(axes, shape))), jnp.bfloat16)


def layer(p, x):
    return constrain(x + jax.nn.gelu(x @ p["up"]) @ p["down"], P("data"))


def loss(params, tokens):
    x = constrain(params["table"][tokens], P("data"))
    for p in params["layers"]:
        x = layer(p, x)
    z = (x @ params["table"].T).astype(jnp.float32)
    own = jnp.take_along_axis(z, tokens[..., None], -1)[..., 0]
    return (jax.nn.logsumexp(z, -1) - own).mean()


def update(params, tokens):
    return jax.tree.map(lambda p, g: p - g, params, jax.grad(loss)(params, tokens))


layers = [{"up": fitting((1024, 4096), None, "model"), "down": fitting((4096, 1024), "model", None)} for _ in range(2)]
step = jax.jit(update, donate_argnames=("params",))
arguments = {"table": fitting((VOCABULARY, 1024), "model", None), "layers": layers}, array((16, 512), P("data"), jnp.int32)
"""
)

_MERGED = (
    HEAD
    + """\
def layer(p, x):
    scores = jax.nn.softmax(jnp.einsum("tbd,sbd->bts", x, x))
    x = x + jnp.einsum("bts,sbd->tbd", scores, x)
    flat = x.swapaxes(0, 1).reshape(-1, 1024)
    y = jax.nn.gelu(flat @ p["up"]) @ p["down"]
    return constrain(x + y.reshape(64, 512, 1024).swapaxes(0, 1), P(None, "data"))


def loss(layers, x):
    for p in layers:
        x = layer(p, x)
    return (x.astype(jnp.float32) ** 2).mean()


def update(layers, x):
    return jax.tree.map(lambda p, g: p - g, layers, jax.grad(loss)(layers, x))


def make():
    return {"up": array((1024, 4096), P(None, "model")), "down": array((4096, 1024), P("model", None))}


step = jax.jit(update, donate_argnames=("layers",))
arguments = [make() for _ in range(2)], array((512, 64, 1024), P(None, "data"))
"""
)

VALUE_CASES = {
    "sequences that are merged behind time": Case(
        _MERGED, (("flat = x.swapaxes(0, 1).reshape", "flat = x.reshape"), ("y.reshape(64, 512, 1024).swapaxes(0, 1)", "y.reshape(512, 64, 1024)")),
        ("lost axis",), 'behind dimension 0 of 512, so it loses "data"',
    ),
    "a vocabulary that an axis does not divide": Case(
        _VOCABULARY, (("VOCABULARY = 50304", "VOCABULARY = 50257"),), ("uneven",), "dimension 0 of 50257",
    ),
    "a kernel whose gradient is a kernel": Case(
        _KERNEL, (("jax.shard_map(scan, mesh=mesh, in_specs=(ROWS, P()), out_specs=ROWS, check_vma=False)(h, decay)", "scan(h, decay)"),),
        ("kernel",), "`scan`",
    ),
    "a batch that is split by time": Case(
        _TIME, (('P(None, ("data", "model")), jnp', 'P(("data", "model")), jnp'),), ("conflict",), "`xs`",
    ),
    "a batch along the axis of the weights": Case(
        _IDLE, (('(16384, 2048), P("data")', '(16384, 2048), P("model")'),), ("layout",), 'nothing is split along "data"',
    ),
    "a cache that is split by pages": Case(
        _PAGES, (('heads = P(None, None, "model")', 'heads = P("model")'),), ("conflict",), "`pools[*]`",
    ),
}  # fmt: skip
