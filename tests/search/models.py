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


def transformer(layers: int = 2, width: int = 1024, heads: int = 16, vocabulary: int = 8192, batch: int = 32) -> Any:
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
    return training(loss, params, shape(batch, 256, dtype=jnp.int32))


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


def convolutions(channels: int = 256, batch: int = 128) -> Any:
    """A training step of convolutions."""

    def loss(params, images, y):
        x = images
        for w in params["layers"]:
            x = jax.nn.relu(
                jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            )
        return jnp.mean((jnp.mean(x, (1, 2)) @ params["head"] - y).astype(jnp.float32) ** 2)

    params = {"layers": [shape(3, 3, channels, channels) for _ in range(2)], "head": shape(channels, 1024)}
    return training(loss, params, shape(batch, 32, 32, channels), shape(batch, 1024))


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


PROGRAMS = {
    "dense": dense,
    "transformer": transformer,
    "experts": experts,
    "decode": decode,
    "scanned": scanned,
    "convolutions": convolutions,
    "graph": graph,
}
