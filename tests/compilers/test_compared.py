"""Which scatters XLA for TPUs replaces before Shardy propagates, and the shardings that follow."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.compilers.ask import ask
from pyshardy.compilers.plugins import is_installed
from pyshardy.ir.op_lists import ops_named

MESH = {"data": 2, "model": 4}
ROWS, WORDS = 256, 1024


def taken(axis: int, count: int) -> Callable[..., jax.Array]:
    """The gradient of values that indices choose along an axis, so many per row."""

    def chosen(x: jax.Array, at: jax.Array) -> jax.Array:
        shape = list(x.shape)
        shape[axis] = count
        return jnp.sum(jnp.take_along_axis(x, at.reshape(shape), axis) ** 2)

    return jax.grad(chosen)


def indexed(x: jax.Array, at: jax.Array) -> jax.Array:
    """The same by two indices."""
    return jax.grad(lambda x: jnp.sum(x[jnp.arange(ROWS), at] ** 2))(x)


def rows(x: jax.Array, at: jax.Array) -> jax.Array:
    """The gradient of whole rows, as of embeddings."""
    return jax.grad(lambda x: jnp.sum(x[at] ** 2))(x)


def every(x: jax.Array, at: jax.Array) -> jax.Array:
    """An update for each row, which lacks the dimension of one element."""
    return jax.vmap(lambda row, at: row.at[at].add(1.0))(x, at)


def overwritten(x: jax.Array, at: jax.Array) -> jax.Array:
    """Values that updates replace, one per row."""
    numbers = jax.lax.ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
    return jax.lax.scatter(x, at[:, None, None], jnp.ones((ROWS, 1)), numbers, mode="drop")


@pytest.mark.parametrize(
    ("function", "indices", "is_replaced"),
    [
        (taken(1, 1), ROWS, True),
        (taken(0, 1), WORDS, True),
        (taken(1, 2), 2 * ROWS, False),
        (indexed, ROWS, False),
        (rows, ROWS, False),
        (every, ROWS, False),
        (overwritten, ROWS, True),
    ],
)
def test_the_scatters_that_are_replaced(function: Callable[..., jax.Array], indices: int, is_replaced: bool) -> None:
    if not is_installed("tpu"):
        pytest.skip("the compiler for TPUs is not installed beside this Python")
    arguments = jax.ShapeDtypeStruct((ROWS, WORDS), jnp.float32), jax.ShapeDtypeStruct((indices,), jnp.int32)
    module = pyshardy.load(function, *arguments, mesh=MESH, in_shardings=(P("data", "model"), P()), platform="tpu")
    answer = ask(module, "tpu:v5e:2x4")
    assert ("stablehlo.scatter" not in answer.decided) is is_replaced
    own, theirs = (
        pyshardy.propagate(module, **keywords)
        for keywords in ({"compiler": "none", "view": "tpu"}, {"compiler": "tpu:v5e:2x4"})
    )
    assert (next(iter(ops_named(own.module.root, ("stablehlo.scatter",))), None) is None) is is_replaced
    if is_replaced:
        assert own.out_specs == theirs.out_specs


def of_losses(x: jax.Array, labels: jax.Array, mode: str | None = None) -> tuple[jax.Array, jax.Array]:
    """A cross-entropy and its gradient."""

    def loss(x: jax.Array) -> jax.Array:
        return -jnp.sum(jnp.take_along_axis(jax.nn.log_softmax(x), labels[..., None], -1, mode=mode))

    return jax.value_and_grad(loss)(x)


def in_a_scan(x: jax.Array, labels: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.lax.scan(lambda carry, one: (carry, of_losses(*one)), 0.0, (x, labels))[1]


def with_checkpoint(x: jax.Array, labels: jax.Array) -> tuple[jax.Array, jax.Array]:
    def chosen(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.take_along_axis(jnp.tanh(x), labels[:, None], 1) ** 2)

    return jax.value_and_grad(jax.checkpoint(chosen))(x)


@pytest.mark.parametrize(
    ("function", "shape", "kind", "labels"),
    [
        (of_losses, (8, 64, 1000), jnp.bfloat16, jnp.int32),
        (of_losses, (8, 4, 16, 100), jnp.float16, jnp.int8),
        (of_losses, (16, 2), jnp.float32, jnp.uint16),
        (of_losses, (64, 128256), jnp.float32, jnp.uint32),
        (partial(of_losses, mode="clip"), (256, 1024), jnp.float32, jnp.int32),
        (partial(of_losses, mode="promise_in_bounds"), (256, 1024), jnp.float32, jnp.int32),
        (in_a_scan, (4, 64, 1024), jnp.float32, jnp.int32),
        (with_checkpoint, (256, 1024), jnp.float32, jnp.int32),
    ],
)
def test_losses_of_any_size_and_type(
    function: Callable[..., Any], shape: tuple[int, ...], kind: Any, labels: Any
) -> None:
    """No scatter is left; the gathers of the loss are gathers still, in XLA and in the view."""
    if not is_installed("tpu"):
        pytest.skip("the compiler for TPUs is not installed beside this Python")
    arguments = jax.ShapeDtypeStruct(shape, kind), jax.ShapeDtypeStruct(shape[:-1], labels)
    specs = P(*(None,) * (len(shape) - 2), "data"), P()
    module = pyshardy.load(function, *arguments, mesh=MESH, in_shardings=specs, platform="tpu")
    decided = ask(module, "tpu:v5e:2x4").decided
    assert "stablehlo.gather" in decided
    assert "stablehlo.scatter" not in decided
    own = pyshardy.propagate(module, compiler="none", view="tpu").module.root
    assert next(iter(ops_named(own, ("stablehlo.gather",))), None) is not None
    assert next(iter(ops_named(own, ("stablehlo.scatter",))), None) is None
