"""Training and serving steps of many kinds on eight devices, of about a GiB per device, for compilers to judge.

The steps of `AT_HAND` were at hand when rules of the estimate were written: their compiled programs were read. Those of
`HELD_OUT` were not. Both have models of `tests/search`, with weights whole or split over all devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P
from search.models import PROGRAMS

import pyshardy

BF16, F32, I32 = jnp.bfloat16, jnp.float32, jnp.int32
MESH = {"data": 4, "model": 2}
ALL = ("data", "model")
Tree = Any


class Step(NamedTuple):
    """A step to compile.

    Attributes:
        name: Its name.
        function: What is compiled.
        shapes: Its arguments.
        shardings: The partition specs of its arguments.
        donated: The numbers of the arguments that it may overwrite.
    """

    name: str
    function: Callable[..., Any]
    shapes: tuple[Tree, ...]
    shardings: tuple[Tree, ...]
    donated: tuple[int, ...] = ()

    def load(self, platform: str) -> Any:
        """The step as JAX lowers it for "cuda" or "tpu"."""
        return pyshardy.load(
            self.function,
            *self.shapes,
            mesh=MESH,
            in_shardings=self.shardings,
            donate_argnums=self.donated,
            platform=platform,
        )


def shape(*sizes: int, dtype: Any = F32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(sizes, dtype)


def norm(x: jax.Array, gain: jax.Array) -> jax.Array:
    wide = x.astype(F32)
    return (wide * lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)).astype(x.dtype) * gain


def attend(x: jax.Array, p: Tree, heads: int, causal: bool = True) -> jax.Array:
    batch, length, width = x.shape
    q, k, v = ((x @ p[name]).reshape(batch, length, heads, -1) for name in ("wq", "wk", "wv"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(F32) * q.shape[-1] ** -0.5
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1).astype(x.dtype), v)
    return mixed.reshape(batch, length, -1) @ p["wo"]


def momentum(loss: Callable[..., jax.Array]) -> Callable[..., Any]:
    """A step of gradient descent with momentum."""

    def step(params: Tree, state: Tree, *data: Any) -> tuple[Tree, Tree]:
        gradients = jax.grad(loss)(params, *data)
        state = jax.tree.map(lambda m, g: 0.9 * m + g.astype(m.dtype), state, gradients)
        return jax.tree.map(lambda p, m: p - 0.01 * m, params, state), state

    return step


def in_bf16(tree: Tree) -> Tree:
    return jax.tree.map(lambda leaf: leaf.astype(BF16), tree)


def crossed(logits: jax.Array, labels: jax.Array) -> jax.Array:
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits.astype(F32)), labels[..., None], -1))


def _decoder(layers: int, remat: bool, scanned: bool) -> tuple[Any, Tree]:
    width, hidden, words = 1024, 2816, 16000
    square = dict.fromkeys(("wq", "wk", "wv", "wo"), (width, width))
    sizes = square | {"wg": (width, hidden), "wu": (width, hidden), "wd": (hidden, width)}
    sizes |= {"n1": (width,), "n2": (width,)}
    one = {name: shape(*((layers,) if scanned else ()), *size) for name, size in sizes.items()}
    given = {
        "emb": shape(words, width),
        "layers": one if scanned else [one] * layers,
        "out": shape(width, words),
    }

    def layer(x: jax.Array, p: Tree) -> jax.Array:
        x = x + attend(norm(x, p["n1"]), p, 16)
        y = norm(x, p["n2"])
        return x + (jax.nn.silu(y @ p["wg"]) * (y @ p["wu"])) @ p["wd"]

    body = jax.checkpoint(layer) if remat else layer

    def loss(params: Tree, tokens: jax.Array) -> jax.Array:
        p = in_bf16(params)
        x = p["emb"][tokens[:, :-1]]
        if scanned:
            x, _ = lax.scan(lambda carry, one: (body(carry, one), None), x, p["layers"])
        else:
            for one in p["layers"]:
                x = body(x, one)
        return crossed(x @ p["out"], tokens[:, 1:])

    return momentum(loss), given


_OUT, _IN = ("wq", "wk", "wv", "wg", "wu", "out"), ("wo", "wd", "emb")


def _tensor(name: str) -> P:
    return P(None, "model") if name in _OUT else P("model") if name in _IN else P()


def _sharded(name: str) -> P:
    return P(ALL) if name in (*_OUT, *_IN) else P()


def _both(name: str) -> P:
    return P("data", "model") if name in _OUT else P("model", "data") if name in _IN else P()


RULES: dict[str, tuple[Callable[[str], P], P]] = {
    "tensor parallel": (_tensor, P("data")),
    "FSDP": (_sharded, P(ALL)),
    "both": (_both, P("data")),
}


def _specs(given: Tree, rule: Callable[[str], P], scanned: bool) -> Tree:
    def one(path: Any, leaf: Any) -> P:
        spec = rule(path[-1].key)
        return P(None, *spec) if scanned and path[0].key == "layers" else spec

    return jax.tree_util.tree_map_with_path(one, given)


def _decoders() -> Iterator[Step]:
    tokens = shape(64, 513, dtype=I32)
    for scanned, remat in ((True, False), (True, True), (False, False), (False, True)):
        step, given = _decoder(4, remat, scanned)
        for name, (rule, batch) in RULES.items():
            specs = _specs(given, rule, scanned)
            what = ("scan" if scanned else "unrolled") + (", checkpoint" if remat else "")
            yield Step(f"decoder, {what}, {name}", step, (given, given, tokens), (specs, specs, batch), (0, 1))


def _encoder() -> Step:
    """A vision transformer over all devices, with layer normalizations and GELU."""
    width = 768
    one = {name: shape(width, width) for name in ("wq", "wk", "wv", "wo")}
    one |= {"n1": shape(width), "n2": shape(width), "up": shape(width, 4 * width), "down": shape(4 * width, width)}
    given = {"patch": shape(768, width), "layers": [one] * 4, "head": shape(width, 1000)}

    def loss(params: Tree, images: jax.Array, labels: jax.Array) -> jax.Array:
        p = in_bf16(params)
        x = images.reshape(-1, 14, 16, 14, 16, 3).transpose(0, 1, 3, 2, 4, 5).reshape(-1, 196, 768) @ p["patch"]
        for layer in p["layers"]:
            x = x + attend(norm(x, layer["n1"]), layer, 12, causal=False)
            x = x + jax.nn.gelu(norm(x, layer["n2"]) @ layer["up"]) @ layer["down"]
        return crossed(x.mean(1) @ p["head"], labels)

    data = shape(1024, 224, 224, 3, dtype=BF16), shape(1024, dtype=I32)
    return Step("vision transformer", momentum(loss), (given, given, *data), (P(), P(), P(ALL), P(ALL)), (0, 1))


def _unet() -> Step:
    """Convolutions down and up again, with what goes down kept for the way up."""

    def conv(x: jax.Array, kernel: jax.Array, stride: int = 1) -> jax.Array:
        return lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    given = {
        "first": shape(3, 3, 4, 32),
        "down": [shape(3, 3, 32, 64), shape(3, 3, 64, 128)],
        "up": [shape(3, 3, 128, 64), shape(3, 3, 64, 32)],
        "last": shape(3, 3, 32, 4),
    }

    def loss(params: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
        p = in_bf16(params)
        x = jax.nn.silu(conv(x, p["first"]))
        kept = []
        for kernel in p["down"]:
            kept.append(x)
            x = jax.nn.silu(conv(x, kernel, 2))
        for kernel in p["up"]:
            x = jax.nn.silu(conv(jnp.repeat(jnp.repeat(x, 2, 1), 2, 2), kernel)) + kept.pop()
        return jnp.mean((conv(x, p["last"]) - y).astype(F32) ** 2)

    data = shape(512, 128, 128, 4, dtype=BF16)
    return Step("U-Net", momentum(loss), (given, given, data, data), (P(), P(), P(ALL), P(ALL)), (0, 1))


def _experts() -> Step:
    """A layer of eight experts, two for each token, with buffers of a fixed capacity."""
    width, hidden, count, capacity = 1024, 4096, 8, 640
    given = {"router": shape(width, count), "up": shape(count, width, hidden), "down": shape(count, hidden, width)}
    specs = {"router": P(), "up": P("data", None, "model"), "down": P("data", "model")}

    def loss(params: Tree, x: jax.Array) -> jax.Array:
        p = in_bf16(params)
        weights, chosen = lax.top_k(jax.nn.softmax((x @ p["router"]).astype(F32)), 2)
        taken = jax.nn.one_hot(chosen, count)
        place = jnp.cumsum(taken.reshape(x.shape[0], -1, count), 1) * taken.reshape(x.shape[0], -1, count) - 1
        place = jax.nn.one_hot(place.astype(I32).reshape(*taken.shape), capacity, dtype=BF16)
        into = jnp.einsum("btkec->btec", place)
        back = jnp.einsum("btkec,btk->btec", place, weights.astype(BF16))
        inside = jnp.einsum("btec,btd->ebcd", into, x)
        out = jnp.einsum("ebcf,efd->ebcd", jax.nn.gelu(jnp.einsum("ebcd,edf->ebcf", inside, p["up"])), p["down"])
        return jnp.mean(jnp.einsum("btec,ebcd->btd", back, out).astype(F32) ** 2)

    data = shape(32, 2048, width, dtype=BF16)
    return Step("experts", momentum(loss), (given, given, data), (specs, specs, P("data")), (0, 1))


def _recurrent() -> Step:
    """A gated recurrent network over 128 steps."""
    width = 1024
    given = {"x": shape(width, 3 * width), "h": shape(width, 3 * width)}

    def loss(params: Tree, x: jax.Array) -> jax.Array:
        p = in_bf16(params)

        def cell(h: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
            update, reset, new = jnp.split(x @ p["x"], 3, -1)
            again = jnp.split(h @ p["h"], 3, -1)
            z, r = jax.nn.sigmoid(update + again[0]), jax.nn.sigmoid(reset + again[1])
            h = (1 - z) * jnp.tanh(new + r * again[2]) + z * h
            return h, h

        _, found = lax.scan(cell, jnp.zeros(x.shape[1:], BF16), x)
        return jnp.mean(found.astype(F32) ** 2)

    data = shape(128, 4096, width, dtype=BF16)
    return Step("recurrent network", momentum(loss), (given, given, data), (P(), P(), P(None, ALL)), (0, 1))


def _contrastive() -> Step:
    """Two towers, whose results all devices compare with all."""
    width = 2048
    given = {tower: [shape(width, width)] * 3 for tower in ("text", "image")}

    def loss(params: Tree, text: jax.Array, image: jax.Array) -> jax.Array:
        p = in_bf16(params)
        for one, two in zip(p["text"], p["image"]):
            text, image = jax.nn.relu(text @ one), jax.nn.relu(image @ two)
        text, image = (x / jnp.linalg.norm(x.astype(F32), axis=-1, keepdims=True) for x in (text, image))
        scores = (text @ image.T) * 14.0
        at = jnp.arange(scores.shape[0])
        return crossed(scores, at) + crossed(scores.T, at)

    specs = jax.tree.map(lambda _: P("model"), given)
    data = shape(32768, width, dtype=BF16)
    return Step("two towers", momentum(loss), (given, given, data, data), (specs, specs, P(ALL), P(ALL)), (0, 1))


def _low_rank() -> Step:
    """Frozen layers with small ones beside them, which alone are trained."""
    width, rank = 2048, 16
    frozen = [shape(width, width, dtype=BF16)] * 6
    given = [{"a": shape(width, rank), "b": shape(rank, width)}] * 6

    def loss(params: Tree, x: jax.Array, layers: Tree) -> jax.Array:
        for w, p in zip(layers, in_bf16(params)):
            x = x + jnp.tanh(x @ w + (x @ p["a"]) @ p["b"])
        return jnp.mean(x.astype(F32) ** 2)

    data = shape(131072, width, dtype=BF16)
    specs = [P(None, "model")] * 6
    return Step("low rank", momentum(loss), (given, given, data, frozen), (P(), P(), P("data"), specs), (0, 1))


def _serving() -> Step:
    """One token more for 128 sequences, with keys and values of those before."""
    layers, width, heads, length = 8, 2048, 16, 2048
    one = {name: shape(layers, width, width, dtype=BF16) for name in ("wq", "wk", "wv", "wo")}
    one |= {"up": shape(layers, width, 4 * width, dtype=BF16), "down": shape(layers, 4 * width, width, dtype=BF16)}
    cache = shape(layers, 128, length, heads, width // heads, dtype=BF16)

    def step(params: Tree, keys: jax.Array, values: jax.Array, x: jax.Array, at: jax.Array) -> Tree:
        def layer(x: jax.Array, given: Tree) -> Tree:
            p, k, v = given
            q, new_k, new_v = ((x @ p[name]).reshape(-1, 1, heads, width // heads) for name in ("wq", "wk", "wv"))
            k, v = (lax.dynamic_update_slice(old, new, (0, at, 0, 0)) for old, new in ((k, new_k), (v, new_v)))
            scores = jnp.einsum("bhd,bthd->bht", q[:, 0], k).astype(F32)
            scores = jax.nn.softmax(jnp.where(jnp.arange(length) <= at, scores, -1e9), -1).astype(BF16)
            x = x + jnp.einsum("bht,bthd->bhd", scores, v).reshape(x.shape) @ p["wo"]
            return x + jax.nn.silu(x @ p["up"]) @ p["down"], (k, v)

        x, (keys, values) = lax.scan(layer, x, (params, keys, values))
        return x, keys, values

    columns, rows = P(None, None, "model"), P(None, "model")
    specs = {name: rows if name in ("wo", "down") else columns for name in one}
    kept = P(None, "data", None, "model")
    shapes = one, cache, cache, shape(128, width, dtype=BF16), shape(dtype=I32)
    return Step("serving", step, shapes, (specs, kept, kept, P("data"), P()), (1, 2))


def _state_space() -> Step:
    """A diagonal linear recurrence by an associative scan."""
    width, inner = 1024, 2048
    given = [{"in": shape(width, 2 * inner), "decay": shape(inner), "out": shape(inner, width)}] * 3

    def loss(params: Tree, x: jax.Array) -> jax.Array:
        for p in in_bf16(params):
            value, gate = jnp.split(x @ p["in"], 2, -1)
            decay = jnp.broadcast_to(jax.nn.sigmoid(p["decay"]), value.shape)
            _, found = lax.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (decay, value), axis=1)
            x = x + (found * jax.nn.silu(gate)) @ p["out"]
        return jnp.mean(x.astype(F32) ** 2)

    specs = [{"in": P(None, "model"), "decay": P("model"), "out": P("model")}] * 3
    data = shape(128, 1024, width, dtype=BF16)
    return Step("state space", momentum(loss), (given, given, data), (specs, specs, P("data")), (0, 1))


def _graph() -> Step:
    """Messages along the edges of a graph, gathered and added at its nodes."""
    width = 256
    given = [{"message": shape(width, width), "own": shape(width, width)}] * 3

    def loss(params: Tree, x: jax.Array, start: jax.Array, end: jax.Array) -> jax.Array:
        for p in params:
            sent = jax.nn.relu(x[start] @ p["message"])
            x = jax.nn.relu(x @ p["own"] + jax.ops.segment_sum(sent, end, x.shape[0]))
        return jnp.mean(x**2)

    edges = shape(2097152, dtype=I32)
    shapes = given, given, shape(262144, width), edges, edges
    return Step("graph network", momentum(loss), shapes, (P(), P(), P(), P(ALL), P(ALL)), (0, 1))


def _embeddings() -> Step:
    """Large tables of embeddings, split by rows, with a small network behind."""
    tables = {"table": shape(1 << 22, 64), "w1": shape(26 * 64, 1024), "w2": shape(1024, 1)}

    def loss(params: Tree, at: jax.Array, y: jax.Array) -> jax.Array:
        x = params["table"][at].reshape(at.shape[0], -1)
        return jnp.mean((jax.nn.relu(x @ params["w1"]) @ params["w2"])[:, 0] * y)

    specs = {"table": P("model"), "w1": P(), "w2": P()}
    data = shape(65536, 26, dtype=I32), shape(65536)
    return Step("embeddings", momentum(loss), (tables, tables, *data), (specs, specs, P("data"), P("data")), (0, 1))


def _microbatches() -> Step:
    """Gradients added over four parts of a batch, in a loop."""
    width = 2048
    given = {"up": shape(width, 4 * width), "down": shape(4 * width, width)}

    def loss(params: Tree, x: jax.Array) -> jax.Array:
        p = in_bf16(params)
        return jnp.mean((x + jax.nn.gelu(x @ p["up"]) @ p["down"]).astype(F32) ** 2)

    def step(params: Tree, x: jax.Array) -> Tree:
        def part(total: Tree, one: jax.Array) -> tuple[Tree, None]:
            return jax.tree.map(jnp.add, total, jax.grad(loss)(params, one)), None

        total, _ = lax.scan(part, jax.tree.map(jnp.zeros_like, params), x)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, total)

    specs = {"up": P("data", "model"), "down": P("model", "data")}
    data = shape(4, 65536, width, dtype=BF16)
    return Step("micro-batches", step, (given, data), (specs, P(None, "data")), (0,))


def _undonated() -> Step:
    """A decoder with nothing donated."""
    step, given = _decoder(2, False, False)
    specs = _specs(given, RULES["FSDP"][0], False)
    tokens = shape(64, 513, dtype=I32)
    return Step("decoder, nothing donated", step, (given, given, tokens), (specs, specs, P(ALL)))


_LARGE: dict[str, dict[str, int]] = {
    "dense": {"batch": 65536},
    "transformer": {"layers": 4, "batch": 64, "length": 512},
    "experts": {"batch": 32768},
    "routed": {"batch": 256},
    "decode": {"batch": 512},
    "prefill": {"batch": 32},
    "scanned": {"batch": 131072},
    "recurrent": {"batch": 4096},
    "vision": {"batch": 4096},
    "convolutions": {"batch": 1024},
    "unet": {"batch": 512},
    "graph": {"nodes": 131072, "edges": 1048576},
}
"""The sizes of the models of `tests/search` at which buffers matter."""


def _split(leaf: jax.ShapeDtypeStruct) -> P:
    """The first dimension that fits over all devices."""
    place = next((dim for dim, size in enumerate(leaf.shape) if size % 8 == 0), None)
    return P() if place is None else P(*[None] * place, ALL)


def _models() -> Iterator[Step]:
    for name, sizes in _LARGE.items():
        step, shapes, donated = PROGRAMS[name](**sizes)
        kept = 3 if len(donated) == 3 else 2  # parameters and their state, or a cache
        data = [P() if not leaf.shape else P(None, ALL) if name == "recurrent" and len(leaf.shape) == 3 else P(ALL)
                for leaf in shapes[kept:]]  # fmt: skip
        for layout, rule in (("whole", lambda leaf: P()), ("split", _split)):
            trees = [jax.tree.map(rule, one) for one in shapes[:kept]]
            if kept == 2:
                trees[1] = jax.tree.map(lambda leaf: P(ALL), shapes[1])
            yield Step(f"{name}, weights {layout}", step, shapes, (*trees, *data), donated)


_READ = ("dense", "prefill", "vision", "convolutions", "unet")
"""The models whose compiled programs were read."""
_MODELS = tuple(_models())
AT_HAND = (
    *_decoders(), _encoder(), _unet(), _experts(), _recurrent(), _contrastive(), _low_rank(), _serving(),
    _state_space(), _graph(), _embeddings(), _microbatches(), _undonated(),
    *(step for step in _MODELS if step.name.startswith(_READ)),
)  # fmt: skip
HELD_OUT = tuple(step for step in _MODELS if not step.name.startswith(_READ))
STEPS = (*AT_HAND, *HELD_OUT)
