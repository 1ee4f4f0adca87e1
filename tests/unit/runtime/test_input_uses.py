"""What programs do with their inputs, and what is drawn for them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pyshardy
from pyshardy.frontend.interface import input_tensors
from pyshardy.runtime.input_uses import InputUse, input_uses
from pyshardy.runtime.inputs import random_inputs

F32 = jnp.float32


def shaped(*shape: int, dtype: Any = F32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def uses(fn: Any, *args: Any) -> list[InputUse]:
    return list(input_uses(pyshardy.load(fn, *args)).values())


def fans(fn: Any, *args: Any) -> list[int]:
    return [use.fan_in for use in uses(fn, *args)]


X, W, IDS = shaped(8, 32), shaped(32, 64), shaped(8, dtype=jnp.int32)


@pytest.mark.parametrize(
    ("fn", "args", "expected"),
    [
        (lambda x, w: x @ w, (X, W), [1, 32]),
        (lambda x, w: jnp.tanh(x) @ w, (X, W), [1, 32]),
        (lambda x, w: jnp.tanh(x) @ w.astype(jnp.bfloat16).astype(F32), (X, W), [1, 32]),
        (lambda x, w: jnp.tanh(x) @ w.T, (X, shaped(64, 32)), [1, 32]),
        (lambda x, w: jnp.tanh(x) @ w.reshape(32, 64), (X, shaped(32, 8, 8)), [1, 32]),
        (lambda x, w: jnp.einsum("bd,dhk->bhk", jnp.tanh(x), w), (X, shaped(32, 4, 8)), [1, 32]),
        (lambda x, w: w @ jnp.tanh(x).T, (X, shaped(64, 32)), [1, 32]),
        (lambda x, w: jax.jit(lambda a, b: a @ b)(jnp.tanh(x), w), (X, W), [1, 32]),
        (lambda x, w: jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, w)[0], (X, shaped(3, 32, 32)), [1, 32]),
        (lambda x, w: jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w) ** 2))(w), (X, W), [1, 32]),
        (lambda x, w: jax.lax.cond(True, lambda: jnp.sin(x) @ w, lambda: jnp.cos(x) @ w), (X, W), [1, 32]),
        (lambda x, w: x * w, (X, shaped(8, 32)), [1, 1]),
        (lambda x, w: jnp.tanh(x) @ w, (X, shaped(32)), [1, 1]),
        (lambda x, w: jax.lax.conv(x, w, (1, 1), "SAME"), (shaped(2, 3, 8, 8), shaped(5, 3, 3, 3)), [1, 27]),
    ],
)
def test_weights_have_a_fan_in(fn: Any, args: Any, expected: list[int]) -> None:
    assert fans(fn, *args) == expected


@pytest.mark.parametrize(
    ("fn", "args", "expected"),
    [
        (lambda e, i: e[i], (shaped(50, 4), IDS), 50),
        (lambda e, i: e[0, i], (shaped(3, 50), IDS), 50),
        (lambda e, i: e[i, 0], (shaped(50, 3), IDS), 50),
        (lambda e, i: jnp.take_along_axis(e, i[:, None], 1), (shaped(8, 50), IDS), 50),
        (lambda e, i: jnp.take(e, i.reshape(2, 4), axis=0), (shaped(50, 4), IDS), 50),
        (lambda e, i: e.at[i].add(1.0), (shaped(50, 4), IDS), 50),
        (lambda e, i: jax.nn.one_hot(i, 20) + e, (shaped(), IDS), 20),
        (lambda e, i: e[i] + jax.nn.one_hot(i, 20), (shaped(50, 20), IDS), 20),
        (lambda e, i: jax.lax.dynamic_slice_in_dim(e, i, 4), (shaped(50, 4), shaped(dtype=jnp.int32)), 47),
        (lambda e, i: jax.lax.dynamic_update_slice(e, e[:4], (i, 0)), (shaped(50, 4), shaped(dtype=jnp.int32)), 47),
        (lambda e, i: jnp.where(jnp.arange(16) <= i, e, 0), (shaped(16), shaped(dtype=jnp.int32)), 16),
        (lambda e, i: jax.lax.switch(i, [jnp.sin, jnp.cos, jnp.tan], e), (X, shaped(dtype=jnp.int32)), 3),
        (lambda e, i: e * i, (shaped(8), IDS), None),
        (lambda e, i: e[i * 2], (shaped(50, 4), IDS), None),
    ],
)
def test_indices_have_a_size(fn: Any, args: Any, expected: int | None) -> None:
    assert uses(fn, *args)[1].size == expected


def adam(v: Any, g: Any, count: Any) -> Any:
    v = 0.99 * v + 0.01 * g * g
    return v, g / (jnp.sqrt(v / (1 - 0.99**count)) + 1e-8)


def test_variances_are_not_negative_and_steps_are_counts() -> None:
    v, g, count = uses(adam, X, X, shaped())
    assert v == InputUse(is_not_negative=True)
    assert g == InputUse()
    assert count == InputUse(is_count=True)
    assert uses(lambda x: jnp.sqrt(jnp.sum(x * x)), X) == [InputUse()]
    assert uses(lambda x: jax.lax.rsqrt(x + 1e-3), X)[0].is_not_negative
    assert uses(lambda x: jnp.log(2 * x), X)[0].is_not_negative
    assert not uses(lambda x, y: jnp.log(jnp.exp(x)), X, X)[0].is_not_negative


def test_what_is_drawn_fits_the_use() -> None:
    def program(table: Any, ids: Any, w: Any, variance: Any, count: Any) -> Any:
        return jnp.tanh(table[ids] * jax.lax.rsqrt(variance)) @ w * 0.9**count

    args = (shaped(3000, 64), shaped(2000, dtype=jnp.int32), shaped(64, 100), shaped(64), shaped())
    module = pyshardy.load(program, *args)
    ports = input_tensors(module.root)
    table, ids, w, variance, count = random_inputs(ports, 0, input_uses(module))
    assert 0.9 < table.std() < 1.1
    assert (ids.min() < 100, ids.max() > 2900, ids.min() >= 0, ids.max() < 3000) == (True, True, True, True)
    assert 0.9 / 8 < w.std() < 1.1 / 8
    assert variance.min() >= 0
    assert count in range(1, 8)
    for array, again in zip((table, ids, w, variance, count), random_inputs(ports, 0, input_uses(module))):
        np.testing.assert_array_equal(array, again)


def test_indices_of_a_small_type_stay_within_it() -> None:
    module = pyshardy.load(lambda e, i: e[i.astype(jnp.int32)], shaped(300), shaped(1000, dtype=jnp.int8))
    assert input_uses(module)[1].size == 300
    ids = random_inputs(input_tensors(module.root), 0, input_uses(module))[1]
    assert 100 < ids.max() <= 127
    assert ids.min() >= 0


def test_a_function_that_calls_itself_ends() -> None:
    module = pyshardy.load("""
    func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
      %0 = call @again(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
      return %0 : tensor<4x4xf32>
    }
    func.func private @again(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
      %0 = call @again(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
      return %0 : tensor<4x4xf32>
    }""")
    assert input_uses(module) == {0: InputUse()}
