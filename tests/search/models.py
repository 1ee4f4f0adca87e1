"""Programs to search shardings for, small enough to be partitioned often, of shapes that matter."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp


def shape(*sizes: int, dtype: Any = jnp.bfloat16) -> Any:
    return jax.ShapeDtypeStruct(sizes, dtype)


def norm(x: Any) -> Any:
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)).astype(x.dtype)


def attend(x: Any, w: Any) -> Any:
    q, k, v = (jnp.einsum("btw,whd->bthd", x, w[name]) for name in "qkv")
    scores = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k).astype(jnp.float32), -1).astype(x.dtype)
    return jnp.einsum("bhts,bshd,hdw->btw", scores, v, w["o"])


def attention_shapes(width: int, heads: int) -> dict[str, Any]:
    one = shape(width, heads, width // heads)
    return {"q": one, "k": one, "v": one, "o": shape(heads, width // heads, width)}


def adam(loss: Any) -> Any:
    def step(params, mean, square, *data):
        value, gradients = jax.value_and_grad(loss)(params, *data)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradients)
        square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, gradients)
        params = jax.tree.map(
            lambda p, m, s: p - (0.1 * m / (jnp.sqrt(s) + 1e-8)).astype(p.dtype), params, mean, square
        )
        return params, mean, square, value

    return step


def training(loss: Any, params: Any, *data: Any) -> tuple[Any, tuple[Any, ...], tuple[int, ...]]:
    state = jax.tree.map(lambda leaf: shape(*leaf.shape, dtype=jnp.float32), params)
    return adam(loss), (params, state, state, *data), (0, 1, 2)


def dense(width: int = 2048, hidden: int = 8192, batch: int = 4096) -> Any:
    """A training step of two layers."""

    def loss(params, x, y):
        return jnp.mean((jax.nn.gelu(x @ params["up"]) @ params["down"] - y).astype(jnp.float32) ** 2)

    params = {"up": shape(width, hidden), "down": shape(hidden, width)}
    return training(loss, params, shape(batch, width), shape(batch, width))


def transformer(
    layers: int = 2, width: int = 1024, heads: int = 16, vocabulary: int = 8192, batch: int = 32, length: int = 256
) -> Any:
    """A training step of a decoder."""

    def loss(params, tokens):
        x = params["embed"][tokens]
        for w in params["layers"]:
            x = x + attend(norm(x), w)
            x = x + jax.nn.gelu(norm(x) @ w["up"]) @ w["down"]
        logits = (norm(x) @ params["head"]).astype(jnp.float32)
        wanted = jnp.take_along_axis(logits, tokens[..., None], -1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - wanted)

    layer = {**attention_shapes(width, heads), "up": shape(width, 4 * width), "down": shape(4 * width, width)}
    params = {
        "embed": shape(vocabulary, width),
        "head": shape(width, vocabulary),
        "layers": [layer for _ in range(layers)],
    }
    return training(loss, params, shape(batch, length, dtype=jnp.int32))


def experts(count: int = 16, width: int = 1024, hidden: int = 4096, batch: int = 4096) -> Any:
    """A training step of a mixture of experts with dense routing of fixed capacity."""

    def loss(params, x, y):
        gates = jax.nn.softmax((x @ params["gate"]).astype(jnp.float32), -1).astype(x.dtype)
        sent = jnp.einsum("be,bw->ebw", gates, x)
        made = jnp.einsum("ebh,ehw->ebw", jax.nn.gelu(jnp.einsum("ebw,ewh->ebh", sent, params["up"])), params["down"])
        return jnp.mean((jnp.einsum("ebw,be->bw", made, gates) - y).astype(jnp.float32) ** 2)

    params = {"gate": shape(width, count), "up": shape(count, width, hidden), "down": shape(count, hidden, width)}
    return training(loss, params, shape(batch, width), shape(batch, width))


def decode(width: int = 2048, heads: int = 16, batch: int = 64, length: int = 2048) -> Any:
    """One step of inference with a cache of keys and values, which is donated."""

    def step(params, cache, x, at):
        q, k, v = (jnp.einsum("bw,whd->bhd", x, params[name]) for name in "qkv")
        keys = jax.lax.dynamic_update_slice(cache["keys"], k[:, None], (0, at, 0, 0))
        values = jax.lax.dynamic_update_slice(cache["values"], v[:, None], (0, at, 0, 0))
        scores = jax.nn.softmax(jnp.einsum("bhd,bshd->bhs", q, keys).astype(jnp.float32), -1).astype(x.dtype)
        x = x + jnp.einsum("bhs,bshd,hdw->bw", scores, values, params["o"])
        x = x + jax.nn.gelu(x @ params["up"]) @ params["down"]
        return {"keys": keys, "values": values}, x

    params = {**attention_shapes(width, heads), "up": shape(width, 4 * width), "down": shape(4 * width, width)}
    one = shape(batch, length, heads, width // heads)
    return step, (params, {"keys": one, "values": one}, shape(batch, width), shape(dtype=jnp.int32)), (1,)


def scanned(layers: int = 8, width: int = 1024, batch: int = 8192) -> Any:
    """A training step of layers in a scan."""

    def loss(params, x, y):
        def layer(x, w):
            return x + jax.nn.gelu(x @ w["up"]) @ w["down"], None

        x, _ = jax.lax.scan(layer, x, params)
        return jnp.mean((x - y).astype(jnp.float32) ** 2)

    params = {"up": shape(layers, width, 4 * width), "down": shape(layers, 4 * width, width)}
    return training(loss, params, shape(batch, width), shape(batch, width))


def convolutions(channels: int = 256, batch: int = 128, size: int = 32) -> Any:
    """A training step of convolutions."""

    def loss(params, images, y):
        x = images
        for w in params["layers"]:
            x = jax.nn.relu(
                jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            )
        return jnp.mean((jnp.mean(x, (1, 2)) @ params["head"] - y).astype(jnp.float32) ** 2)

    params = {"layers": [shape(3, 3, channels, channels) for _ in range(2)], "head": shape(channels, 1024)}
    return training(loss, params, shape(batch, size, size, channels), shape(batch, 1024))


def graph(nodes: int = 16384, edges: int = 131072, width: int = 256) -> Any:
    """A training step of message passing on a graph."""

    def loss(params, x, senders, receivers, y):
        for w in params:
            messages = jax.nn.gelu(x[senders] @ w["edge"])
            x = x + jax.ops.segment_sum(messages, receivers, nodes) @ w["node"]
        return jnp.mean((x - y) ** 2)

    layer = {"edge": shape(width, width, dtype=jnp.float32), "node": shape(width, width, dtype=jnp.float32)}
    index = shape(edges, dtype=jnp.int32)
    x = shape(nodes, width, dtype=jnp.float32)
    return training(loss, [layer, layer], x, index, index, x)


def prefill(width: int = 2048, heads: int = 16, groups: int = 8, batch: int = 8, length: int = 2048) -> Any:
    """Inference on whole prompts, heads of queries in groups, which fills the cache of keys and values."""

    def step(params, cache, x):
        q = jnp.einsum("btw,wghd->btghd", x, params["q"])
        k, v = (jnp.einsum("btw,wgd->btgd", x, params[name]) for name in "kv")
        keys, values = (
            jax.lax.dynamic_update_slice(cache[name], new, (0, 0, 0, 0)) for name, new in (("keys", k), ("values", v))
        )
        scores = jnp.einsum("btghd,bsgd->bghts", q, k).astype(jnp.float32)
        at = jnp.arange(x.shape[1])
        scores = jax.nn.softmax(jnp.where(at[:, None] >= at, scores, -1e9), -1).astype(x.dtype)
        x = x + jnp.einsum("bghts,bsgd,ghdw->btw", scores, v, params["o"])
        return {"keys": keys, "values": values}, x + jax.nn.silu(x @ params["up"]) @ params["down"]

    size = width // heads
    params = {
        "q": shape(width, groups, heads // groups, size),
        "k": shape(width, groups, size),
        "v": shape(width, groups, size),
        "o": shape(groups, heads // groups, size, width),
        "up": shape(width, 4 * width),
        "down": shape(4 * width, width),
    }
    one = shape(batch, 2 * length, groups, size)
    return step, (params, {"keys": one, "values": one}, shape(batch, length, width)), (1,)


def routed(
    count: int = 16, width: int = 1024, hidden: int = 4096, batch: int = 32, length: int = 256, rooms: int = 32
) -> Any:
    """A training step of a mixture of experts where two experts get a token, as far as they have room for it."""

    def loss(params, x, y):
        gates = jax.nn.softmax((x @ params["gate"]).astype(jnp.float32), -1)
        _, which = jax.lax.top_k(gates, 2)
        is_sent = jnp.sum(jax.nn.one_hot(which, count), 2)
        room = (jnp.cumsum(is_sent, 1) * is_sent - 1).astype(jnp.int32)
        places = jax.nn.one_hot(room, rooms, dtype=x.dtype)
        sent = jnp.einsum("btec,btw->ebcw", places, x)
        made = jax.nn.gelu(jnp.einsum("ebcw,ewh->ebch", sent, params["up"]))
        made = jnp.einsum("ebch,ehw->ebcw", made, params["down"])
        mixed = jnp.einsum("ebcw,btec,bte->btw", made, places, gates.astype(x.dtype))
        return jnp.mean((x + mixed - y).astype(jnp.float32) ** 2)

    params = {"gate": shape(width, count), "up": shape(count, width, hidden), "down": shape(count, hidden, width)}
    return training(loss, params, shape(batch, length, width), shape(batch, length, width))


def unet(channels: int = 128, size: int = 32, heads: int = 16, batch: int = 64) -> Any:
    """A training step of a diffusion model: down, attention between places, up again beside what was there before."""

    def convolve(x, w, stride=1):
        names = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=names)

    def loss(params, images, times, noise):
        x = convolve(images, params["first"]) + jax.nn.silu(times @ params["times"])[:, None, None]
        low = convolve(jax.nn.silu(x), params["lower"], 2)
        flat = low.reshape(low.shape[0], -1, low.shape[-1])
        low = (flat + attend(norm(flat), params["middle"])).reshape(low.shape)
        high = jnp.repeat(jnp.repeat(low, 2, 1), 2, 2)
        found = convolve(jax.nn.silu(jnp.concatenate([high, x], -1)), params["last"])
        return jnp.mean((found - noise).astype(jnp.float32) ** 2)

    params = {
        "first": shape(3, 3, 4, channels),
        "times": shape(channels, channels),
        "lower": shape(3, 3, channels, 2 * channels),
        "middle": attention_shapes(2 * channels, heads),
        "last": shape(3, 3, 3 * channels, 4),
    }
    images = shape(batch, size, size, 4)
    return training(loss, params, images, shape(batch, channels), images)


def recurrent(width: int = 1024, hidden: int = 2048, steps: int = 32, batch: int = 256) -> Any:
    """A training step of a long short-term memory, a scan over time."""

    def loss(params, x, y):
        def cell(state, x):
            h, c = state
            gates = jnp.einsum("bw,wgh->gbh", x, params["input"]) + jnp.einsum("bk,kgh->gbh", h, params["state"])
            keep, take, show = (jax.nn.sigmoid(gates[place]) for place in range(3))
            c = keep * c + take * jnp.tanh(gates[3])
            return (show * jnp.tanh(c), c), None

        start = jnp.zeros((x.shape[1], params["state"].shape[0]), x.dtype)
        (h, _), _ = jax.lax.scan(cell, (start, start), x)
        return jnp.mean((h @ params["head"] - y).astype(jnp.float32) ** 2)

    params = {"input": shape(width, 4, hidden), "state": shape(hidden, 4, hidden), "head": shape(hidden, width)}
    return training(loss, params, shape(steps, batch, width), shape(batch, width))


def vision(width: int = 1024, heads: int = 16, batch: int = 128, patches: int = 64, classes: int = 1024) -> Any:
    """A training step of a vision transformer of one layer."""

    def loss(params, x, y):
        w = params["layer"]
        x = x @ params["patch"] + params["place"]
        x = x + attend(norm(x), w)
        x = x + jax.nn.gelu(norm(x) @ w["up"]) @ w["down"]
        logits = (jnp.mean(norm(x), 1) @ params["head"]).astype(jnp.float32)
        return jnp.mean(jnp.sum(-jax.nn.log_softmax(logits) * y, -1))

    layer = {**attention_shapes(width, heads), "up": shape(width, 4 * width), "down": shape(4 * width, width)}
    params = {
        "patch": shape(768, width),
        "place": shape(patches, width),
        "layer": layer,
        "head": shape(width, classes),
    }
    return training(loss, params, shape(batch, patches, 768), shape(batch, classes, dtype=jnp.float32))


PROGRAMS = {
    "dense": dense,
    "transformer": transformer,
    "experts": experts,
    "routed": routed,
    "decode": decode,
    "prefill": prefill,
    "scanned": scanned,
    "recurrent": recurrent,
    "vision": vision,
    "convolutions": convolutions,
    "unet": unet,
    "graph": graph,
}

SMALL: dict[str, dict[str, int]] = {
    "dense": {"width": 64, "hidden": 256, "batch": 128},
    "transformer": {"layers": 2, "width": 64, "heads": 8, "vocabulary": 128, "batch": 8, "length": 32},
    "experts": {"count": 8, "width": 32, "hidden": 64, "batch": 64},
    "routed": {"count": 8, "width": 32, "hidden": 64, "batch": 8, "length": 32, "rooms": 8},
    "decode": {"width": 64, "heads": 8, "batch": 16, "length": 32},
    "prefill": {"width": 64, "heads": 16, "groups": 8, "batch": 8, "length": 32},
    "scanned": {"layers": 8, "width": 64, "batch": 128},
    "recurrent": {"width": 32, "hidden": 64, "steps": 8, "batch": 32},
    "vision": {"width": 64, "heads": 8, "batch": 16, "patches": 16, "classes": 64},
    "convolutions": {"channels": 16, "batch": 16, "size": 16},
    "unet": {"channels": 16, "size": 16, "heads": 8, "batch": 16},
    "graph": {"nodes": 128, "edges": 512, "width": 32},
}
"""Sizes at which a program compiles and runs on eight virtual devices in moments."""


def small(program: str) -> tuple[Any, tuple[Any, ...], tuple[int, ...]]:
    """A program, scaled down, in f32: XLA for CPUs widens bf16."""
    step, arguments, donated = PROGRAMS[program](**SMALL[program])

    def wide(leaf: Any) -> Any:
        return shape(*leaf.shape, dtype=jnp.float32) if leaf.dtype == jnp.bfloat16 else leaf

    return step, jax.tree.map(wide, arguments), donated
