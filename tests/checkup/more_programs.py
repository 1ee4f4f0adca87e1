"""More programs with one mistake each, in how specs are written: in rules, variables, functions and loops."""

from __future__ import annotations

from checkup.programs import HEAD, STATE, Case

_UPDATE = """\
def loss(layers, x):
    for p in layers:
        x = layer(p, x)
    return (x.astype(jnp.float32) ** 2).mean()


def update(layers, x):
    grads = jax.grad(loss)(layers, x)
    return jax.tree.map(lambda p, g: p - g, layers, grads)


"""
_ATTENTION = (
    HEAD
    + """\
ROWS, COLUMNS = P("model", None), P(None, "model")


def layer(p, x):
    q, k, v = (
        (x @ p["q"]).reshape(64, 512, 16, 64), (x @ p["k"]).reshape(64, 512, 16, 64), (x @ p["v"]).reshape(64, 512, 16, 64)
    )
    y = jax.nn.dot_product_attention(q, k, v).reshape(x.shape)
    return constrain(x + y @ p["o"], P("data"))


"""
    + _UPDATE
    + """\
def make():
    square = 1024, 1024
    return {
        "q": array(square, COLUMNS, jnp.bfloat16),
        "k": array(square, COLUMNS, jnp.bfloat16),
        "v": array(square, COLUMNS, jnp.bfloat16),
        "o": array(square, ROWS, jnp.bfloat16),
    }


step = jax.jit(update, donate_argnames=("layers",))
arguments = [make() for _ in range(2)], array((64, 512, 1024), P("data"), jnp.bfloat16)
"""
)
_CONSTRAINED = (
    HEAD
    + """\
specs = {"q": P(None, "model"), "k": P(None, "model"), "v": P(None, "model"), "o": P("model", None)}


@jax.checkpoint
def layer(p, x):
    q = x @ constrain(p["q"], specs["q"])
    k = x @ constrain(p["k"], specs["k"])
    v = x @ constrain(p["v"], specs["v"])
    q, k, v = (one.reshape(64, 512, 16, 64) for one in (q, k, v))
    y = jax.nn.dot_product_attention(q, k, v).reshape(x.shape)
    return x + y @ constrain(p["o"], specs["o"])


"""
    + _UPDATE
    + """\
step = jax.jit(update, donate_argnames=("layers",))
layers = [{name: array((1024, 1024), spec, jnp.bfloat16) for name, spec in specs.items()} for _ in range(2)]
arguments = layers, array((64, 512, 1024), P("data"), jnp.bfloat16)
"""
)
_HANDED = (
    _ATTENTION.replace("def layer(p, x):\n", """\
def layer(p, x, place):
    split = lambda y: place(y.reshape(64, 512, 16, 64), P("data", None, "model"))
""")
    .replace("""\
        (x @ p["q"]).reshape(64, 512, 16, 64), (x @ p["k"]).reshape(64, 512, 16, 64), (x @ p["v"]).reshape(64, 512, 16, 64)
""", """\
        split(x @ p["q"]), split(x @ p["k"]), split(x @ p["v"])
""")
    .replace("x = layer(p, x)", "x = layer(p, x, constrain)")
)  # fmt: skip
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
_RULES = (
    HEAD
    + """\
RULES = (
    ("batch", "data"),
    ("embed", None),
    ("mlp", "model"),
    ("heads", "model"),
)


def spec_of(names):
    return P(*[dict(RULES).get(name) for name in names])


def with_logical_constraint(x, names):
    return jax.lax.with_sharding_constraint(x, on(spec_of(names)))


def with_logical_partitioning(shape, names):
    return array(shape, spec_of(names), jnp.bfloat16)


def loss(layers, x):
    for p in layers:
        h = jnp.tanh(x @ p["up"])
        h = with_logical_constraint(h, ("batch", "mlp"))
        x = x + h @ p["down"]
        x = x + (x @ p["query"]) @ p["out"]
        x = with_logical_constraint(x, ("batch", "embed"))
    return (x.astype(jnp.float32) ** 2).mean()


def update(layers, x):
    return jax.tree.map(lambda p, g: p - g, layers, jax.grad(loss)(layers, x))


def make():
    return {
        "up": with_logical_partitioning((2048, 8192), ("embed", "mlp")),
        "down": with_logical_partitioning((8192, 2048), ("mlp", "embed")),
        "query": with_logical_partitioning((2048, 2048), ("embed", "heads")),
        "out": with_logical_partitioning((2048, 2048), ("heads", "embed")),
    }


step = jax.jit(update, donate_argnames=("layers",))
arguments = [make() for _ in range(2)], array((16384, 2048), P("data"), jnp.bfloat16)
"""
)
_CHOSEN = (
    HEAD
    + """\
def loss(params, x):
    for p in params["layers"]:
        x = x + jax.nn.relu(x @ p["up"]) @ p["down"]
        x = constrain(x, P("data"))
    return ((x @ params["head"]).astype(jnp.float32) ** 2).mean()


def update(params, x):
    grads = jax.grad(loss)(params, x)
    return jax.tree.map(lambda p, g: p - g, params, grads)


def choose(path, shape):
    name = jax.tree_util.keystr(path)
    if "head" in name or "up" in name:
        return P(None, "model")
    if "down" in name:
        return P("model", None)
    return P()


shapes = {"layers": [{"up": (2048, 8192), "down": (8192, 2048)} for _ in range(4)], "head": (2048, 4096)}
params = jax.tree_util.tree_map_with_path(
    lambda path, shape: array(shape, choose(path, shape), jnp.bfloat16), shapes, is_leaf=lambda x: isinstance(x, tuple)
)
step = jax.jit(update, donate_argnames=("params",))
arguments = params, array((16384, 2048), P("data"), jnp.bfloat16)
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
_LOOP = (
    HEAD
    + """\
def loss(w, x, scale):
    h = x @ w
    scale = jnp.broadcast_to(scale[:, None, None], (32, 512, 8))
    first, second = [constrain(value, P("data")) for value in (h, scale)]
    return (jnp.tanh(first[..., :8] * second).mean() + jnp.tanh(first).mean()).astype(jnp.float32)


def update(w, x, scale):
    return w - jax.grad(loss)(w, x, scale)


step = jax.jit(update, donate_argnames=("w",))
w = array((2048, 8192), P(None, "model"), jnp.bfloat16)
arguments = w, array((32, 512, 2048), P("data"), jnp.bfloat16), array((32,), P("data"), jnp.bfloat16)
"""
)
_BATCH_RULE = (
    HEAD
    + """\
RULES = (
    ("batch", ("data", "model")),
    ("embed", "model"),
    ("mlp", None),
    ("features", None),
)


def spec_of(names):
    return P(*[dict(RULES).get(name) for name in names])


def with_logical_constraint(x, names):
    return jax.lax.with_sharding_constraint(x, on(spec_of(names)))


def put(x, *names):
    return with_logical_constraint(x, names)


def loss(layers, x):
    for p in layers:
        h = put(jnp.tanh(x @ p["up"]), "batch", "mlp")
        x = x + h @ p["down"]
        x = put(x, "batch", "features")
    return (x.astype(jnp.float32) ** 2).mean()


def update(layers, x):
    return jax.tree.map(lambda p, g: p - g, layers, jax.grad(loss)(layers, x))


def make():
    up, down = spec_of(("embed", "mlp")), spec_of(("mlp", "embed"))
    return {"up": array((2048, 8192), up, jnp.bfloat16), "down": array((8192, 2048), down, jnp.bfloat16)}


step = jax.jit(update, donate_argnames=("layers",))
arguments = [make() for _ in range(2)], array((131072, 2048), P(("data", "model")), jnp.bfloat16)
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

MORE_CASES = {
    "a vocabulary that an axis does not divide": Case(
        _VOCABULARY, (("VOCABULARY = 50304", "VOCABULARY = 50257"),), ("uneven",), "dimension 0 of 50257",
    ),
    "three weights with one mistake": Case(
        _ATTENTION, tuple((f'"{name}": array(square, COLUMNS', f'"{name}": array(square, ROWS') for name in "qkv"),
        ("conflict",), "layers[*]['k']`, `layers[*]['q']` and `layers[*]['v']",
    ),
    "one of three weights the wrong way round": Case(
        _ATTENTION, (('"q": array(square, COLUMNS', '"q": array(square, ROWS'),),
        ("conflict",), "layers[*]['q']",
    ),
    "a weight that its layer constrains, the wrong way round": Case(
        _CONSTRAINED, (('"q": P(None, "model")', '"q": P("model", None)'),), ("conflict",), "layers[*]['q']",
    ),
    "a spec that one line writes for three values": Case(
        _HANDED, (('P("data", None, "model")', 'P("data", "model")'),), ("constraint",), "P('data', 'model')",
    ),
    "a name without a rule": Case(_RULES, (('("mlp", "model")', '("hidden", "model")'),), ("rule",), "'mlp'"),
    "a kernel whose gradient is a kernel": Case(
        _KERNEL, (("jax.shard_map(scan, mesh=mesh, in_specs=(ROWS, P()), out_specs=ROWS, check_vma=False)(h, decay)", "scan(h, decay)"),),
        ("kernel",), "`scan`",
    ),
    "a rule without an axis": Case(_RULES, (('("mlp", "model")', '("mlp", None)'),), ("rule",), "'mlp'"),
    "a function that asks for a name that no array has": Case(
        _CHOSEN, (('or "up" in name', 'or "wide" in name'), ('if "down" in name', 'if "narrow" in name')),
        ("whole state",), "params['layers'][*]['up']",
    ),
    "a batch that is split by time": Case(
        _TIME, (('P(None, ("data", "model")), jnp', 'P(("data", "model")), jnp'),), ("conflict",), "`xs`",
    ),
    "one constraint for several values": Case(
        _LOOP.replace("first, second = [constrain(value, P(\"data\")) for value in (h, scale)]", "first, second = [value for value in (h, scale)]"),
        (("[value for value in (h, scale)]", '[constrain(value, P("data")) for value in (h, scale)]'),),
        ("constraint",), "P('data')",
    ),
    "a rule that lacks an axis": Case(_BATCH_RULE, (('("batch", ("data", "model"))', '("batch", "data")'),), ("rule",), "'batch'"),
    "a batch along the axis of the weights": Case(
        _IDLE, (('(16384, 2048), P("data")', '(16384, 2048), P("model")'),), ("layout",), 'nothing is split along "data"',
    ),
    "a state that a mapped function makes whole": Case(
        STATE.replace("mean = {name: array(shape, mean_specs[name]) for name, shape in shapes.items()}",
                       "mean = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), params)"),
        (("sharding=x.sharding)", "sharding=on(P()))"),), ("whole state",), "mean['down']",
    ),
    "a cache that is split by pages": Case(
        _PAGES, (('heads = P(None, None, "model")', 'heads = P("model")'),), ("conflict",), "`pools[*]`",
    ),
}  # fmt: skip
