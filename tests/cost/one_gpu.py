"""Programs that ran on one H100, with their times, beside estimates; see `docs/cost.md`.

From `tests/`: `python -m cost.one_gpu` prints the table, `python -m cost.one_gpu --write` puts it into `docs/cost.md`.
"""

from __future__ import annotations

import functools
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import pyshardy
from pyshardy.costing.chips import find_hardware

from .published import PAGE

START, END = "<!-- written by python -m cost.one_gpu --write -->", "<!-- end of one GPU -->"
BF16, F32, I32 = jnp.bfloat16, jnp.float32, jnp.int32
Tree = Any


class Measured(NamedTuple):
    """A program that ran.

    Attributes:
        name: Its name.
        function: What ran.
        shapes: Its arguments.
        donated: The numbers of the arguments that it may overwrite.
        seconds: The median of five measured times, each the mean of several runs one after another.
        fitted: The number in the description of the chip that was taken from this program; None if none was.
    """

    name: str
    function: Callable[..., Any]
    shapes: tuple[Tree, ...]
    donated: tuple[int, ...]
    seconds: float
    fitted: str | None = None


def _shape(*sizes: int, dtype: Any = BF16) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(sizes, dtype)


def _norm(x: jax.Array, gain: jax.Array) -> jax.Array:
    wide = x.astype(F32)
    return (wide * lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)).astype(x.dtype) * gain


def _attention(x: jax.Array, p: Tree, heads: int) -> jax.Array:
    batch, length, width = x.shape
    q, k, v = ((x @ p[name]).reshape(batch, length, heads, width // heads) for name in ("wq", "wk", "wv"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(F32) / np.sqrt(width // heads)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1).astype(x.dtype), v)
    return mixed.reshape(batch, length, width) @ p["wo"]


def _layer(x: jax.Array, p: Tree, heads: int) -> jax.Array:
    x = x + _attention(_norm(x, p["n1"]), p, heads)
    y = _norm(x, p["n2"])
    return x + (jax.nn.silu(y @ p["wg"]) * (y @ p["wu"])) @ p["wd"]


def _weights(layers: int, width: int, inner: int, words: int, dtype: Any, stacked: bool) -> Tree:
    square, wide = (width, width), (width, inner)
    sizes = {"wq": square, "wk": square, "wv": square, "wo": square, "wg": wide, "wu": wide, "wd": (inner, width)}
    sizes |= {"n1": (width,), "n2": (width,)}
    one = {name: _shape(*((layers,) if stacked else ()), *size, dtype=dtype) for name, size in sizes.items()}
    return {
        "emb": _shape(words, width, dtype=dtype),
        "layers": one if stacked else [one] * layers,
        "out": _shape(width, words, dtype=dtype),
    }


def _loss(weights: Tree, tokens: jax.Array, stacked: bool) -> jax.Array:
    p = jax.tree.map(lambda leaf: leaf.astype(BF16), weights)
    x = p["emb"][tokens[:, :-1]]
    if stacked:
        x, _ = lax.scan(lambda carry, layer: (_layer(carry, layer, 16), None), x, p["layers"])
    else:
        for layer in p["layers"]:
            x = _layer(x, layer, 16)
    logits = jax.nn.log_softmax((x @ p["out"]).astype(F32))
    return -jnp.mean(jnp.take_along_axis(logits, tokens[:, 1:, None], -1))


def _train(weights: Tree, m: Tree, v: Tree, tokens: jax.Array, stacked: bool = False) -> Tree:
    gradients = jax.grad(_loss)(weights, tokens, stacked)
    m = jax.tree.map(lambda a, g: 0.9 * a + 0.1 * g, m, gradients)
    v = jax.tree.map(lambda a, g: 0.99 * a + 0.01 * g * g, v, gradients)
    return jax.tree.map(lambda p, a, b: p - 1e-4 * a / (jnp.sqrt(b) + 1e-8), weights, m, v), m, v


def _decode(weights: Tree, keys: jax.Array, values: jax.Array, token: jax.Array, at: jax.Array) -> Tree:
    def step(x: jax.Array, given: Tree) -> Tree:
        p, k, v = given
        batch, width = x.shape
        heads = k.shape[2]
        y = _norm(x, p["n1"])
        q, new_k, new_v = ((y @ p[name]).reshape(batch, -1, heads, width // heads) for name in ("wq", "wk", "wv"))
        k, v = (lax.dynamic_update_slice(old, new, (0, at, 0, 0)) for old, new in ((k, new_k), (v, new_v)))
        scores = jnp.einsum("bhd,bthd->bht", q[:, 0], k).astype(F32) / np.sqrt(width // heads)
        scores = jnp.where(jnp.arange(k.shape[1]) <= at, scores, -1e9)
        mixed = jnp.einsum("bht,bthd->bhd", jax.nn.softmax(scores, -1).astype(BF16), v).reshape(batch, width)
        x = x + mixed @ p["wo"]
        y = _norm(x, p["n2"])
        return x + (jax.nn.silu(y @ p["wg"]) * (y @ p["wu"])) @ p["wd"], (k, v)

    x, (keys, values) = lax.scan(step, weights["emb"][token], (weights["layers"], keys, values))
    return jnp.argmax(x @ weights["out"], -1), keys, values


def _convolutions(weights: Tree, images: jax.Array, labels: jax.Array) -> Tree:
    def loss(p: Tree) -> jax.Array:
        x = images
        for kernel in p["c"]:
            y = lax.conv_general_dilated(
                jax.nn.relu(x), kernel.astype(BF16), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            x = x + y if x.shape == y.shape else y
        logits = jnp.mean(x, (1, 2)) @ p["o"].astype(BF16)
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits.astype(F32)) * labels, -1))

    return jax.tree.map(lambda p, g: p - 1e-3 * g, weights, jax.grad(loss)(weights))


def _mlp(w1: jax.Array, w2: jax.Array, x: jax.Array) -> Tree:
    def loss(w: Tree) -> jax.Array:
        return jnp.sum((jax.nn.gelu(x @ w[0]) @ w[1]).astype(F32) ** 2)

    return jax.grad(loss)((w1, w2))


def _programs() -> Iterator[Measured]:
    square, vector = _shape(8192, 8192), _shape(8192)
    wide = _shape(8192, 8192, dtype=F32)
    large = _shape(16384, 16384)
    kernels = [(3, 3, 3, 64), *[(3, 3, 64, 64)] * 6, (3, 3, 64, 256), *[(3, 3, 256, 256)] * 6]
    images = {"c": [_shape(*size, dtype=F32) for size in kernels], "o": _shape(256, 1000, dtype=F32)}
    tokens = _shape(8, 1025, dtype=I32)
    plain, stacked = (_weights(12, 2048, 5632, 32000, F32, flag) for flag in (False, True))
    cache = _shape(32, 1, 2048, 32, 128)
    served = _weights(32, 4096, 11008, 32000, BF16, True)
    yield Measured("product of bf16[8192, 8192]", jnp.matmul, (square, square), (), 1.516e-3)
    yield Measured("product of f32[8192, 8192]", jnp.matmul, (wide, wide), (), 3.002e-3)
    yield Measured("product of bf16[512, 512]", jnp.matmul, (_shape(512, 512),) * 2, (), 3.57e-5, "dispatch_s")
    yield Measured("matrix times vector", jnp.matmul, (square, vector), (), 5.3e-5)
    yield Measured(
        "16 rows times a matrix", jnp.matmul, (_shape(16, 8192), square), (), 5.59e-5, "product_memory_efficiency"
    )
    layers = _shape(4096, 16384), _shape(16384, 4096), _shape(8192, 4096)
    yield Measured("two layers and their gradient", _mlp, layers, (), 8.422e-3)
    yield Measured(
        "tanh(a) * b + a", lambda a, b: jnp.tanh(a) * b + a, (large, large), (), 5.35e-4, "memory_efficiency"
    )
    yield Measured("sum", lambda a: jnp.sum(a.astype(F32)), (_shape(32768, 16384),), (), 3.49e-4)
    yield Measured("transpose", lambda a: a.T, (large,), (), 3.93e-4)
    rows = _shape(262144, 1024), _shape(262144, dtype=I32)
    yield Measured("lookup of rows", lambda table, at: table[at], rows, (), 3.24e-4)
    yield Measured("sort", lambda a: jnp.sort(a, -1), (_shape(1024, 65536, dtype=F32),), (), 4.780e-3)
    yield Measured(
        "cumulative sum", lambda a: jnp.cumsum(a, -1), (_shape(4096, 32768, dtype=F32),), (), 9.03e-4, "scan_passes"
    )
    yield Measured("Fourier transform", jnp.fft.fft, (_shape(4096, 16384, dtype=jnp.complex64),), (), 4.14e-4)
    yield Measured("training, 12 layers", _train, (plain, plain, plain, tokens), (0, 1, 2), 7.9026e-2)
    yield Measured("training, nothing donated", _train, (plain, plain, plain, tokens), (), 8.6707e-2)
    yield Measured(
        "training, layers in a scan", functools.partial(_train, stacked=True), (stacked,) * 3 + (tokens,), (0, 1, 2),
        0.122416,
    )  # fmt: skip
    number = _shape(1, dtype=I32), _shape(dtype=I32)
    yield Measured("decoding with 7 billion", _decode, (served, cache, cache, *number), (1, 2), 1.8771e-2)
    batch = _shape(64, 56, 56, 3), _shape(64, 1000, dtype=F32)
    yield Measured("training of convolutions", _convolutions, (images, *batch), (0,), 9.097e-3)
    yield Measured(
        "Cholesky decomposition", lambda a: jnp.linalg.cholesky(a @ a.T + 1e3 * jnp.eye(4096)),
        (_shape(4096, 4096, dtype=F32),), (), 2.067e-3, "solver_efficiency",
    )  # fmt: skip


PROGRAMS = tuple(_programs())


def estimates(programs: Sequence[Measured] = PROGRAMS) -> Iterator[tuple[Measured, float]]:
    """Programs with their estimated seconds in a loop of steps."""
    for one in programs:
        jitted = jax.jit(lambda *args, run=one.function: run(*args), donate_argnums=one.donated)
        module = pyshardy.load(jitted, *one.shapes, mesh={"x": 1}, platform="cuda")
        yield one, max(pyshardy.cost(module, "h100").step_seconds, find_hardware("h100").dispatch_s)


def line(one: Measured, seconds: float) -> str:
    """A program as a row of the table."""
    error = seconds / one.seconds - 1
    fitted = f"`{one.fitted}`" if one.fitted else ""
    return f"| {one.name} | {one.seconds * 1e3:.3g} | {seconds * 1e3:.3g} | {error:+.0%} | {fitted} |"


def table(found: Sequence[tuple[Measured, float]]) -> str:
    """A table in Markdown of all programs, good or bad."""
    lines = ["| program | measured ms | estimated ms | error | gave |", "|---|---|---|---|---|"]
    lines += [line(one, seconds) for one, seconds in found]
    errors = [abs(seconds / one.seconds - 1) for one, seconds in found if one.fitted is None]
    within = sum(error <= 0.3 for error in errors)
    said = f"{within} of the {len(errors)} programs that gave no number are within 30 %; their median error is "
    return "\n".join([*lines, "", f"{said}{statistics.median(errors):.0%}."])


def write(found: Sequence[tuple[Measured, float]]) -> None:
    """Put the table into the page between its marks."""
    head, _, rest = PAGE.read_text().partition(START)
    _, _, tail = rest.partition(END)
    PAGE.write_text(f"{head}{START}\n{table(found)}\n{END}{tail}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write([*estimates()])
    else:
        print(table([*estimates()]))
