"""Deep programs, in which rounding grows: what `pyshardy run` must not take for errors, nor let hide them.

Each is a function, its arguments as shapes, and the partition specs of some, over the mesh `data=4, model=2`. Their
inputs are drawn by `pyshardy run`, which knows nothing of them but the module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import pyshardy
from programs.base import named

COLUMNS, ROWS, BATCH = P(None, "model"), P("model", None), P("data")


class Deep(NamedTuple):
    """A function, its arguments as shapes, and their partition specs."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    specs: tuple[Any, ...]

    def load(self) -> pyshardy.Module:
        """The program as a module."""
        mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model"))
        lowered = jax.jit(self.fn, in_shardings=named(mesh, self.specs)).lower(*self.args)
        return pyshardy.load(lowered.as_text())


def shaped(*shape: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def normalized(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def gradient_step(loss: Callable[..., Any]) -> Callable[..., Any]:
    def step(params: Any, *data: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, *data)
        return jax.tree.map(lambda p, g: (p - 0.1 * g).astype(p.dtype), params, gradients), value

    return step


def residual_mlp(dtype: Any, layers: int = 24) -> Deep:
    """Residual blocks with layer norm, and a gradient step."""

    def loss(params: Any, x: Any) -> Any:
        for up, down in params:
            x = x + jax.nn.gelu(normalized(x) @ up) @ down
        return jnp.mean(x.astype(jnp.float32) ** 2)

    params = [(shaped(32, 64, dtype=dtype), shaped(64, 32, dtype=dtype))] * layers
    return Deep(gradient_step(loss), (params, shaped(16, 32, dtype=dtype)), ([(COLUMNS, ROWS)] * layers, BATCH))


def plain_mlp(activation: Callable[[Any], Any], layers: int = 16) -> Deep:
    """Layers one behind the other, without norm or residuals."""

    def forward(params: Any, x: Any) -> Any:
        for w in params:
            x = activation(x @ w)
        return x

    specs = [COLUMNS if layer % 2 == 0 else ROWS for layer in range(layers)]
    return Deep(forward, ([shaped(48, 48)] * layers, shaped(16, 48)), (specs, BATCH))


def attention(x: Any, w: Any, heads: int = 4) -> Any:
    batch, time, width = x.shape
    y = normalized(x)
    q, k, v = ((y @ w[name]).reshape(batch, time, heads, width // heads) for name in "qkv")
    logits = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(width // heads).astype(x.dtype)
    logits = jnp.where(jnp.tril(jnp.ones((time, time), bool)), logits, jnp.asarray(-1e9, x.dtype))
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(logits), v).reshape(batch, time, width)
    x = x + mixed @ w["o"]
    return x + jax.nn.silu(normalized(x) @ w["up"]) @ w["down"]


_BLOCK = dict.fromkeys("qkvo", (32, 32)) | {"up": (32, 64), "down": (64, 32)}
_SPECS = dict.fromkeys("qkv", COLUMNS) | {"o": ROWS, "up": COLUMNS, "down": ROWS}


def transformer(dtype: Any, layers: int = 12) -> Deep:
    """A decoder, forward: logits and the likeliest token."""

    def forward(params: Any, tokens: Any) -> Any:
        x = params["embed"][tokens]
        for w in params["layers"]:
            x = attention(x, w)
        logits = x @ params["embed"].T
        return logits, jnp.argmax(logits, -1)

    blocks = [{name: shaped(*shape, dtype=dtype) for name, shape in _BLOCK.items()}] * layers
    params = {"embed": shaped(100, 32, dtype=dtype), "layers": blocks}
    specs = {"embed": None, "layers": [_SPECS] * layers}
    return Deep(forward, (params, shaped(8, 12, dtype=jnp.int32)), (specs, BATCH))


def transformer_training(compute: Any, layers: int = 16) -> Deep:
    """A decoder by scan over stacked layers, with Adam; weights in f32, the layers in another type maybe."""

    def loss(params: Any, tokens: Any) -> Any:
        x = params["embed"][tokens].astype(compute)
        layers = jax.tree.map(lambda w: w.astype(compute), params["layers"])
        x, _ = jax.lax.scan(lambda x, w: (attention(x, w), None), x, layers)
        logits = jax.nn.log_softmax(x.astype(jnp.float32) @ params["embed"].T)
        return -jnp.mean(jnp.take_along_axis(logits[:, :-1], tokens[:, 1:, None], -1))

    def step(params: Any, first: Any, second: Any, count: Any, tokens: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, tokens)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
        second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, gradients)
        scale = jnp.sqrt(1 - 0.99**count) / (1 - 0.9**count)
        update = jax.tree.map(lambda p, m, v: p - 0.01 * scale * m / (jnp.sqrt(v) + 1e-8), params, first, second)
        return update, first, second, count + 1, value

    params = {"embed": shaped(64, 32), "layers": {name: shaped(layers, *shape) for name, shape in _BLOCK.items()}}
    specs = {"embed": None, "layers": {name: P(None, *spec) for name, spec in _SPECS.items()}}
    args = (params, params, params, shaped(), shaped(8, 10, dtype=jnp.int32))
    return Deep(step, args, (specs, specs, specs, None, BATCH))


def recurrent(dtype: Any, steps: int = 128) -> Deep:
    """A recurrent network over a long sequence."""

    def forward(recur: Any, enter: Any, x: Any) -> Any:
        def cell(state: Any, now: Any) -> Any:
            state = jnp.tanh(now @ enter + state @ recur)
            return state, state.mean(-1)

        return jax.lax.scan(cell, jnp.zeros((x.shape[1], 32), dtype), x)

    args = (shaped(32, 32, dtype=dtype), shaped(16, 32, dtype=dtype), shaped(steps, 8, 16, dtype=dtype))
    return Deep(forward, args, (ROWS, COLUMNS, P(None, "data")))


def lstm(steps: int = 32) -> Deep:
    """An LSTM with its gradient."""

    def loss(params: Any, x: Any) -> Any:
        def cell(carry: Any, now: Any) -> Any:
            hidden, memory = carry
            enter, forget, leave, new = jnp.split(now @ params[0] + hidden @ params[1] + params[2], 4, -1)
            memory = jax.nn.sigmoid(forget) * memory + jax.nn.sigmoid(enter) * jnp.tanh(new)
            hidden = jax.nn.sigmoid(leave) * jnp.tanh(memory)
            return (hidden, memory), hidden

        start = jnp.zeros((x.shape[1], 16))
        return jnp.mean(jax.lax.scan(cell, (start, start), x)[1] ** 2)

    params = (shaped(8, 64), shaped(16, 64), shaped(64))
    return Deep(gradient_step(loss), (params, shaped(steps, 8, 8)), ((COLUMNS, COLUMNS, None), P(None, "data")))


def convolutional(dtype: Any, layers: int = 12) -> Deep:
    """Residual convolutions with batch norm in inference: means, variances and scales are inputs."""

    def forward(params: Any, x: Any) -> Any:
        for kernel, mean, variance, scale in params:
            y = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = x + jax.nn.relu((y - mean) * jax.lax.rsqrt(variance + jnp.asarray(1e-3, dtype)) * scale)
        return x, x.mean((1, 2))

    row = shaped(8, dtype=dtype)
    params = [(shaped(3, 3, 8, 8, dtype=dtype), row, row, row)] * layers
    specs = [(P(None, None, "model"), None, None, None)] * layers
    return Deep(forward, (params, shaped(8, 12, 12, 8, dtype=dtype)), (specs, BATCH))


def descent(rounds: int = 32) -> Deep:
    """Many steps of gradient descent in one program."""

    def loss(w: Any, x: Any, y: Any) -> Any:
        return jnp.mean((jnp.tanh(x @ w[0]) @ w[1] - y) ** 2)

    def train(w: Any, x: Any, y: Any) -> Any:
        def step(w: Any, _: Any) -> Any:
            value, gradients = jax.value_and_grad(loss)(w, x, y)
            return jax.tree.map(lambda p, g: p - 0.1 * g, w, gradients), value

        return jax.lax.scan(step, w, None, length=rounds)

    return Deep(
        train, ([shaped(16, 32), shaped(32, 4)], shaped(32, 16), shaped(32, 4)), ([COLUMNS, ROWS], BATCH, BATCH)
    )


def one_low_layer() -> Deep:
    """A program in f32 of which one layer computes in bf16, and one output comes before it."""

    def forward(first: Any, low: Any, x: Any) -> Any:
        before = jnp.tanh(x @ first)
        return before, (before.astype(jnp.bfloat16) @ low.astype(jnp.bfloat16)).astype(jnp.float32)

    return Deep(forward, (shaped(32, 64), shaped(64, 32), shaped(16, 32)), (COLUMNS, ROWS, BATCH))


def experts(layers: int = 6) -> Deep:
    """A mixture of experts: each token goes through the one with the largest gate."""

    def forward(params: Any, x: Any) -> Any:
        for gate, up, down in params:
            weights = jax.nn.softmax(x @ gate)
            chosen = jax.nn.one_hot(jnp.argmax(weights, -1), 4)
            hidden = jax.nn.relu(jnp.einsum("td,edf->tef", normalized(x), up))
            x = x + jnp.einsum("tef,efd,te->td", hidden, down, chosen * weights)
        return x

    params = [(shaped(16, 4), shaped(4, 16, 32), shaped(4, 32, 16))] * layers
    specs = [(None, P("model"), P("model"))] * layers
    return Deep(forward, (params, shaped(32, 16)), (specs, BATCH))


def chaotic(rounds: int = 60) -> Deep:
    """A chaotic map: any rounding is as large as the values in the end."""

    def forward(w: Any, x: Any) -> Any:
        return jax.lax.scan(lambda x, _: (jnp.sin(20 * x @ w), None), x, None, length=rounds)[0]

    return Deep(forward, (shaped(64, 64), shaped(8, 64)), (ROWS, BATCH))


DEEP: dict[str, Callable[[], Deep]] = {
    "residual mlp f32": lambda: residual_mlp(jnp.float32),
    "residual mlp bf16": lambda: residual_mlp(jnp.bfloat16, 12),
    "residual mlp f16": lambda: residual_mlp(jnp.float16, 6),
    "relu mlp": lambda: plain_mlp(jax.nn.relu),
    "tanh mlp": lambda: plain_mlp(jnp.tanh, 24),
    "transformer f32": lambda: transformer(jnp.float32),
    "transformer bf16": lambda: transformer(jnp.bfloat16),
    "transformer training f32": lambda: transformer_training(jnp.float32),
    "transformer training mixed": lambda: transformer_training(jnp.bfloat16),
    "recurrent f32": lambda: recurrent(jnp.float32),
    "recurrent bf16": lambda: recurrent(jnp.bfloat16),
    "lstm": lstm,
    "convolutional f32": lambda: convolutional(jnp.float32),
    "convolutional bf16": lambda: convolutional(jnp.bfloat16),
    "descent": descent,
    "one low layer": one_low_layer,
    "experts": experts,
}
"""Deep programs by name, whose noise is smaller than their values."""
