"""Programs with at most six classes of dimensions, of which all shardings of inputs can be tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from search.models import norm, shape


class Tiny(NamedTuple):
    """A program.

    Attributes:
        step: The function.
        arguments: The shapes of its arguments.
        donated: Which of them are donated.
    """

    step: Callable[..., Any]
    arguments: tuple[Any, ...]
    donated: tuple[int, ...] = ()


def _gated(x: Any, gate: Any, up: Any, down: Any) -> Any:
    return (jax.nn.silu(x @ gate) * (x @ up)) @ down


def _attention(q: Any, k: Any, v: Any) -> Any:
    scores = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k).astype(jnp.float32), -1).astype(q.dtype)
    return jnp.einsum("bhts,bshd->bthd", scores, v)


def _descent(params: Any, x: Any, y: Any) -> Any:
    def loss(params: Any) -> Any:
        return jnp.mean((jnp.tanh(x @ params["w"]) - y).astype(jnp.float32) ** 2)

    value, gradients = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda w, g: w - 0.1 * g, params, gradients), value


def _convolved(waves: Any, kernel: Any) -> Any:
    names = ("NWC", "WIO", "NWC")
    return jax.nn.relu(jax.lax.conv_general_dilated(waves, kernel, (1,), "SAME", dimension_numbers=names))


def _mixed(x: Any, up: Any) -> Any:
    return jnp.tanh(jnp.einsum("ebw,ewh->ebh", x, up))


TINY = {
    "product": Tiny(lambda x, w: jnp.tanh(x @ w), (shape(4096, 1024), shape(1024, 4096))),
    "tall product": Tiny(lambda x, w: jnp.tanh(x @ w), (shape(65536, 256), shape(256, 512))),
    "inner product": Tiny(lambda x, w: x @ w, (shape(256, 65536), shape(65536, 256))),
    "product of norms": Tiny(lambda x, w: norm(x) @ w, (shape(4096, 2048), shape(2048, 8192))),
    "two products": Tiny(
        lambda x, up, down: jax.nn.gelu(x @ up) @ down, (shape(4096, 2048), shape(2048, 8192), shape(8192, 2048))
    ),
    "gated products": Tiny(_gated, (shape(2048, 1024), shape(1024, 4096), shape(1024, 4096), shape(4096, 1024))),
    "one matrix twice": Tiny(lambda x, w: jnp.tanh(x @ w) @ w.T, (shape(4096, 1024), shape(1024, 8192))),
    "products by expert": Tiny(_mixed, (shape(16, 512, 1024), shape(16, 1024, 4096))),
    "lookup": Tiny(
        lambda table, tokens, head: table[tokens] @ head,
        (shape(8192, 1024), shape(64, 256, dtype=jnp.int32), shape(1024, 4096)),
    ),
    "attention": Tiny(_attention, (shape(8, 1024, 16, 64),) * 3),
    "convolution": Tiny(_convolved, (shape(64, 1024, 256), shape(3, 256, 512))),
    "gradient descent": Tiny(_descent, ({"w": shape(2048, 4096)}, shape(4096, 2048), shape(4096, 4096)), (0,)),
}
