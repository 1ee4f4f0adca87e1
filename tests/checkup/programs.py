"""Programs with one mistake each, and the same programs without it, as source that a patch applies to.

A program is a file that defines `step` and `arguments`. `mistake` is a text of the sound program and what stands there
instead.
"""

from __future__ import annotations

from typing import NamedTuple

HEAD = """\
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def on(spec):
    return NamedSharding(mesh, spec)


def constrain(x, spec):
    return jax.lax.with_sharding_constraint(x, on(spec))


def array(shape, spec, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=on(spec))


"""
_TRAIN = (
    HEAD
    + """\
specs = {"embed": P("model", "data"), "w1": P("data", "model"), "w2": P("model", "data")}
shapes = {"embed": (32000, 1024), "w1": (1024, 4096), "w2": (4096, 1024)}


def loss(params, tokens):
    x = params["embed"][tokens]
    x = constrain(x, P("data"))
    h = jnp.tanh(x @ params["w1"])
    y = h @ params["w2"]
    y = constrain(y, P("data"))
    return (y.astype(jnp.float32) ** 2).mean()


def update(params, tokens):
    value, grads = jax.value_and_grad(loss)(params, tokens)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


given = {name: on(spec) for name, spec in specs.items()}
step = jax.jit(update, out_shardings=(given, None), donate_argnames=("params",))
params = {name: array(shape, specs[name]) for name, shape in shapes.items()}
arguments = params, array((64, 1024), P("data"), jnp.int32)
"""
)
_LAYERS = (
    HEAD
    + """\
def block(x, layer):
    h = jax.nn.relu(x @ layer["up"])
    y = x + h @ layer["down"]
    y = constrain(y, P("data"))
    return y


def loss(layers, x):
    for layer in layers:
        x = block(x, layer)
    return (x**2).mean()


def update(layers, x):
    grads = jax.grad(loss)(layers, x)
    return jax.tree.map(lambda p, g: p - 0.1 * g, layers, grads)


specs = {"up": P(None, "model"), "down": P("model", None)}
given = [{name: on(spec) for name, spec in specs.items()}] * 6
step = jax.jit(update, out_shardings=given, donate_argnames=("layers",))
layers = [{"up": array((2048, 8192), specs["up"]), "down": array((8192, 2048), specs["down"])} for _ in range(6)]
arguments = layers, array((8192, 2048), P("data"))
"""
)
_MICRO = (
    HEAD
    + """\
def loss(w, x):
    h = jnp.tanh(x @ w)
    return (jnp.tanh(h @ w) ** 2).mean()


def update(w, x):
    xs = x.reshape(4, 16384, 2048)
    xs = constrain(xs, P(None, ("data", "model")))

    def body(total, part):
        return total + jax.grad(loss)(w, part), None

    return jax.lax.scan(body, jnp.zeros_like(w), xs)[0]


step = jax.jit(update, out_shardings=on(P()))
arguments = array((2048, 2048), P(), jnp.bfloat16), array((65536, 2048), P(("data", "model")), jnp.bfloat16)
"""
)
_SCALED = (
    HEAD
    + """\
def loss(w, x, scale):
    h = jnp.tanh(x @ w)
    return (jnp.tanh(h @ w).mean(-1) * scale).mean()


def micro(x):
    return x.reshape(16384, 4, *x.shape[1:]).swapaxes(0, 1)


def update(w, x, scale):
    def body(total, part):
        return total + jax.grad(loss)(w, *part), None

    return jax.lax.scan(body, jnp.zeros_like(w), (micro(x), micro(scale)))[0]


rows = P(("data", "model"))
step = jax.jit(update, out_shardings=on(P()))
arguments = array((2048, 2048), P(), jnp.bfloat16), array((65536, 2048), rows, jnp.bfloat16), array((65536,), rows)
"""
)
_DECODE = (
    HEAD
    + """\
def attend(cache, q, k, v, at):
    keys = jax.lax.dynamic_update_slice(cache["keys"], k, (0, at, 0, 0))
    values = jax.lax.dynamic_update_slice(cache["values"], v, (0, at, 0, 0))
    scores = jnp.einsum("bhd,bthd->bht", q, keys)
    weights = jax.nn.softmax(scores, axis=-1)
    return jnp.einsum("bht,bthd->bhd", weights, values), {"keys": keys, "values": values}


heads = P("data", None, "model")
kept = {"keys": on(heads), "values": on(heads)}
step = jax.jit(attend, out_shardings=(None, kept), donate_argnames=("cache",))
cache = {name: array((64, 8192, 16, 128), heads, jnp.bfloat16) for name in ("keys", "values")}
new = array((64, 1, 16, 128), heads, jnp.bfloat16)
arguments = cache, array((64, 16, 128), P("data", "model"), jnp.bfloat16), new, new, jax.ShapeDtypeStruct((), jnp.int32)
"""
)
_EXPERTS = (
    HEAD
    + """\
def experts(p, x):
    weight, chosen = jax.lax.top_k(jax.nn.softmax(x @ p["router"], axis=-1), 2)
    mask = jax.nn.one_hot(chosen, 8, dtype=x.dtype)
    place = (jnp.cumsum(mask.sum(2), axis=1) - 1)[:, :, None, :] * mask
    slot = jax.nn.one_hot(place.sum(-1).astype(jnp.int32), 512, dtype=x.dtype)
    inside = jnp.einsum("gske,gskc,gsd->egcd", mask, slot, x)
    inside = constrain(inside, P("model", "data"))
    h = jax.nn.silu(jnp.einsum("egcd,edf->egcf", inside, p["up"]))
    out = jnp.einsum("egcf,efd->egcd", h, p["down"])
    return jnp.einsum("gske,gskc,gsk,egcd->gsd", mask, slot, weight, out)


def loss(p, x):
    return ((x + experts(p, x)).astype(jnp.float32) ** 2).mean()


def update(p, x):
    value, grads = jax.value_and_grad(loss)(p, x)
    return jax.tree.map(lambda w, g: w - 0.1 * g, p, grads), value


step = jax.jit(update, donate_argnames=("p",))
p = {
    "router": array((1024, 8), P()),
    "up": array((8, 1024, 4096), P("model", "data")),
    "down": array((8, 4096, 1024), P("model", None, "data")),
}
arguments = p, array((16, 1024, 1024), P("data"))
"""
)
STATE = (
    HEAD
    + """\
specs = {"up": P("data", "model"), "down": P("model", "data")}
shapes = {"up": (4096, 16384), "down": (16384, 4096)}
mean_specs = {"up": P("data", "model"), "down": P("model", "data")}


def loss(params, x):
    return ((jax.nn.gelu(x @ params["up"]) @ params["down"]) ** 2).mean()


def update(params, mean, x):
    value, grads = jax.value_and_grad(loss)(params, x)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
    return jax.tree.map(lambda p, m: p - 0.1 * m, params, mean), mean, value


step = jax.jit(update, donate_argnames=("params", "mean"))
params = {name: array(shape, specs[name]) for name, shape in shapes.items()}
mean = {name: array(shape, mean_specs[name]) for name, shape in shapes.items()}
arguments = params, mean, array((16384, 4096), P("data"))
"""
)


class Case(NamedTuple):
    """A sound program, and the mistake that is made in it.

    Attributes:
        sound: The source of the sound program.
        mistake: Texts of it, each with what stands there instead.
        kinds: The kinds of findings that name the mistake.
        says: What the first finding says: a line of the source, or a name.
        is_patched: Whether a patch mends it.
    """

    sound: str
    mistake: tuple[tuple[str, str], ...]
    kinds: tuple[str, ...]
    says: str
    is_patched: bool = True

    @property
    def wrong(self) -> str:
        """The source of the program with the mistake."""
        text = self.sound
        for right, wrong in self.mistake:
            assert text.count(right) == 1, right
            text = text.replace(right, wrong)
        return text


CASES = {
    "axis lost at a lookup": Case(
        _TRAIN, (('    x = constrain(x, P("data"))\n', ""), ('    y = constrain(y, P("data"))\n', "")), ("lost axis",), "`x`"
    ),
    "a constraint that is missing": Case(
        _LAYERS, (('    y = constrain(y, P("data"))\n', ""), ('(8192, 2048), P("data"))', "(8192, 2048), P())")), ("layout",), "`x`"
    ),
    "a constraint that gathers": Case(
        _LAYERS, (('    y = constrain(y, P("data"))', '    y = jax.lax.with_sharding_constraint(y, on(P()))'),),
        ("constraint",), "P()",
    ),
    "a rival spec": Case(
        _LAYERS, (('specs = {"up": P(None, "model"), "down": P("model", None)}',
                   'specs = {"up": P(None, "model"), "down": P(None, "model")}'),),
        ("conflict",), "down",
    ),
    "two specs that are exchanged": Case(
        _LAYERS, (('specs = {"up": P(None, "model"), "down": P("model", None)}',
                   'specs = {"up": P("model", None), "down": P("model", None)}'),),
        ("conflict",), "up",
    ),
    "nothing donated": Case(  # a small batch: otherwise activations need the memory of results that are not donated
        _LAYERS.replace('array((8192, 2048), P', 'array((2048, 2048), P'), ((', donate_argnames=("layers",)', ""),), ("donation",), "layers",
    ),
    "a cache that is not donated": Case(_DECODE, ((', donate_argnames=("cache",)', ""),), ("donation",), "cache"),
    "a cache that comes back otherwise": Case(
        _DECODE, (("out_shardings=(None, kept), ", 'out_shardings=(None, {"keys": on(P("data")), "values": on(P("data"))}), '),),
        ("other output", "conflict"), "result[1]",
    ),
    "a cache that goes in otherwise": Case(
        _DECODE, (('128), heads, jnp.bfloat16) for name', '128), P("data", "model"), jnp.bfloat16) for name'),),
        ("other output",), "annotate `cache['keys']` as P('data', None, 'model')",
    ),
    "micro-batches that split the axis": Case(
        _MICRO, (('    xs = constrain(xs, P(None, ("data", "model")))\n', ""),), ("lost axis", "layout"), "`xs`"
    ),
    "a constraint that drops an axis": Case(
        _EXPERTS, (('constrain(inside, P("model", "data"))', 'constrain(inside, P("model"))'),), ("constraint",), 'drops "data"'
    ),
    "a state that is whole": Case(
        STATE, (('mean_specs = {"up": P("data", "model"), "down": P("model", "data")}', 'mean_specs = {"up": P(), "down": P()}'),),
        ("whole state",), "mean",
    ),
    "a weight that is whole": Case(
        _LAYERS, (('"down": P("model", None)}', '"down": P()}'),), ("whole state",), "`layers[*]['down']` is P()"
    ),
    "a state that is whole, in and out": Case(
        STATE.replace('donate_argnames=("params", "mean"))', 'out_shardings=(*given, None), donate_argnames=("params", "mean"))')
        .replace("step = jax.jit", "given = [{name: on(spec) for name, spec in one.items()} for one in (specs, mean_specs)]\nstep = jax.jit"),
        (('mean_specs = {"up": P("data", "model"), "down": P("model", "data")}', 'mean_specs = {"up": P(), "down": P()}'),),
        ("whole state",), "mean",
    ),
    "micro-batches of stretches of rows": Case(
        _SCALED, (("x.reshape(16384, 4, *x.shape[1:]).swapaxes(0, 1)", "x.reshape(4, 16384, *x.shape[1:])"),),
        ("lost axis",), "every 4th row",
    ),
    "outputs that are whole": Case(
        STATE.replace('step = jax.jit(update, donate_argnames=("params", "mean"))',
                       "given = {name: on(spec) for name, spec in specs.items()}\n"
                       'step = jax.jit(\n    update,\n    in_shardings=(given, given, on(P("data"))),\n'
                       '    out_shardings=(given, given, None),\n    donate_argnames=("params", "mean"),\n)'),
        (("out_shardings=(given, given, None)", "out_shardings=(on(P()), on(P()), None)"),),
        ("other output",), "out_shardings",
    ),
    "a batch that is whole": Case(
        _LAYERS, (('(8192, 2048), P("data"))', "(8192, 2048), P())"), ('    y = constrain(y, P("data"))\n', "")),
        ("layout",), "`x`",
    ),
}  # fmt: skip
