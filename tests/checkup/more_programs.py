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


MORE_CASES = {
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
    "a rule without an axis": Case(_RULES, (('("mlp", "model")', '("mlp", None)'),), ("rule",), "'mlp'"),
    "a function that asks for a name that no array has": Case(
        _CHOSEN, (('or "up" in name', 'or "wide" in name'), ('if "down" in name', 'if "narrow" in name')),
        ("whole state",), "params['layers'][*]['up']",
    ),
    "one constraint for several values": Case(
        _LOOP.replace("first, second = [constrain(value, P(\"data\")) for value in (h, scale)]", "first, second = [value for value in (h, scale)]"),
        (("[value for value in (h, scale)]", '[constrain(value, P("data")) for value in (h, scale)]'),),
        ("constraint",), "P('data')",
    ),
    "a rule that lacks an axis": Case(_BATCH_RULE, (('("batch", ("data", "model"))', '("batch", "data")'),), ("rule",), "'batch'"),
    "a state that a mapped function makes whole": Case(
        STATE.replace("mean = {name: array(shape, mean_specs[name]) for name, shape in shapes.items()}",
                       "mean = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), params)"),
        (("sharding=x.sharding)", "sharding=on(P()))"),), ("whole state",), "mean['down']",
    ),
}  # fmt: skip
