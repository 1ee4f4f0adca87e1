"""Training steps whose intermediate values are worth a constraint; tests patch copies of this file."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp


def norm(x):
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)).astype(x.dtype)


def block(x, w):
    mixed = jnp.tanh(norm(x) @ w["q"])
    x = x + mixed @ w["o"]
    hidden = jax.nn.gelu(norm(x) @ w["up"])
    return x + hidden @ w["down"]


def loss(params, x):
    for w in params:
        x = block(x, w)
    return jnp.mean(norm(x).astype(jnp.float32) ** 2)


def remembered(params, x):
    """The same where every block is computed again."""
    for w in params:
        x = jax.checkpoint(block)(x, w)
    return jnp.mean(norm(x).astype(jnp.float32) ** 2)


def scanned(params, x):
    """The same as a scan over layers."""
    x, _ = jax.lax.scan(lambda x, w: (block(x, w), None), x, params)
    return jnp.mean(norm(x).astype(jnp.float32) ** 2)


def dispatched(params, x):
    """Tokens are sent to experts, and back."""
    gates = jax.nn.softmax((x @ params["gate"]).astype(jnp.float32), -1).astype(x.dtype)
    sent = jnp.einsum("bte,btw->ebtw", gates, x)
    made = jnp.einsum("ebth,ehw->ebtw", jax.nn.gelu(jnp.einsum("ebtw,ewh->ebth", sent, params["up"])), params["down"])
    mixed = jnp.sum(made, 0)
    return jnp.mean((x + mixed).astype(jnp.float32) ** 2)


def descent(loss):
    """A step of gradient descent."""

    def step(params, x):
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params, x))

    return step


def layers(count: int = 2, width: int = 1024, batch: int = 16, length: int = 1024, dtype: str = "bfloat16") -> Any:
    """The arguments of a step of `loss` or `remembered`, as shapes."""
    sizes = {"q": (width, width), "o": (width, width), "up": (width, 4 * width), "down": (4 * width, width)}
    layer = {name: jax.ShapeDtypeStruct(shape, dtype) for name, shape in sizes.items()}
    return [layer] * count, jax.ShapeDtypeStruct((batch, length, width), dtype)


def small_layers() -> Any:
    """The same, for eight virtual devices."""
    return layers(width=64, batch=8, length=32, dtype="float32")


def stacked() -> Any:
    """The arguments of `scanned`, small."""
    params, x = small_layers()
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((4, *leaf.shape), leaf.dtype), params[0]), x


def experts() -> Any:
    """The arguments of `dispatched`, small."""
    shape = jax.ShapeDtypeStruct
    params = {"gate": shape((64, 8), "float32"), "up": shape((8, 64, 128), "float32")}
    params["down"] = shape((8, 128, 64), "float32")
    return params, shape((8, 32, 64), "float32")


MEGATRON = {
    "params[*]['q']": ((), ("model",)), "params[*]['o']": (("model",), ()),
    "params[*]['up']": ((), ("model",)), "params[*]['down']": (("model",), ()), "x": (("data",), (), ()),
}  # fmt: skip
"""What people do with these layers."""
