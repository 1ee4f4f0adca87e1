"""What XLA computes wrongly if it sees through it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pyshardy
from pyshardy.ir.nodes import walk
from pyshardy.runtime import quirks
from pyshardy.runtime.execute import run_on_one_device
from pyshardy.runtime.runnable import sequential

Function = Callable[..., jax.Array]


def sliced(x: jax.Array, i: jax.Array, size: int = 4) -> jax.Array:
    """Some rows, or elements, from `i` on."""
    return jax.lax.dynamic_slice_in_dim(x, i, size)


def scattered(x: jax.Array, i: jax.Array) -> jax.Array:
    """A row more, or none if `i` is out of bounds."""
    return x.at[i].add(jnp.ones_like(x[0]), mode="drop", wrap_negative_indices=False)


def computed(take: Function, given: list[Any], devices: int) -> np.ndarray:
    """What a function gives on one device, or with its first argument on several."""
    module = pyshardy.load(jax.jit(take), *given)
    if devices == 1:
        (found,) = run_on_one_device(module, given)
        return np.asarray(found)
    text = module.text().replace("{\n", f'{{\n  sdy.mesh @m = <["x"={devices}]>\n', 1)
    head, argument, rest = text.partition("%arg0: tensor<")
    type, closing, rest = rest.partition(">")
    dims = ", ".join(['{"x"}'] + ["{}"] * (given[0].ndim - 1))
    sharded = f"{head}{argument}{type}{closing} {{sdy.sharding = #sdy.sharding<@m, [{dims}]>}}{rest}"
    (found,) = pyshardy.partition(sharded).run_flat(given)
    return np.asarray(found)


def by_steps(take: Function, given: list[Any]) -> np.ndarray:
    """What a function gives op by op."""
    with jax.disable_jit():
        return np.asarray(take(*map(jnp.asarray, given)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "take",
    [
        lambda x, i: sliced(sliced(x, i) * 3, i, 1),
        lambda x, i: sliced(jax.jit(lambda part: part * 3)(sliced(x, i)), i, 1),
        lambda x, i: sliced(sliced(x, i) * 3 * i, i, 1),
        lambda x, i: sliced(sliced(x.astype("uint32"), i) * 3, i, 1),
        lambda x, i: jnp.take(sliced(x, i) * 3, i),
        lambda x, i: jnp.take(jnp.take(x, jnp.arange(4) + i) * 3, i),
        lambda x, i: x.at[i].set((sliced(x, i) * 3)[i]),
    ],
)
@pytest.mark.parametrize("devices", [1, 8])
def test_an_element_of_a_product_of_a_slice(take: Function, devices: int) -> None:
    """XLA forgets the product: `jax.jit` of the first function has 3 for 9."""
    given = [np.arange(1, 9, dtype=np.int32), np.int32(1)]
    np.testing.assert_array_equal(computed(take, given, devices), by_steps(take, given))


@pytest.mark.slow_but_for("8-5-<lambda>2")
@pytest.mark.parametrize(
    "take",
    [
        lambda x, i: sliced(sliced(x, jnp.minimum(i, 2)), i, 1),
        lambda x, i: scattered(sliced(x, jnp.minimum(i, 2)), i),
        lambda x, i: sliced(x, jnp.minimum(i, 2)).at[i].get(mode="clip", wrap_negative_indices=False),
        lambda x, i: jax.lax.fori_loop(0, 3, lambda j, y: scattered(y, i + j), sliced(x, jnp.minimum(i, 2))),
        lambda x, i: jax.lax.fori_loop(0, 2, lambda j, y: y + sliced(sliced(y, j), i + j, 1), x),
        lambda x, i: sliced(jax.jit(lambda part: sliced(part, jnp.minimum(i, 2)).reshape(2, 6))(x).reshape(4, 3), i, 1),
    ],
)
@pytest.mark.parametrize("index", [-4, 2, 5, 9])
@pytest.mark.parametrize("devices", [1, 8])
def test_a_slice_of_a_slice_out_of_bounds(take: Function, index: int, devices: int) -> None:
    """Before jaxlib 0.12, XLA adds the indices unclamped: `jax.jit` of the first function has row 7 for row 5."""
    given = [np.arange(24, dtype=np.float32).reshape(8, 3), np.int32(index)]
    np.testing.assert_array_equal(computed(take, given, devices), by_steps(take, given))


def test_newer_xlas_may_see_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    module = pyshardy.load(jax.jit(lambda x, i: scattered(sliced(x, i), i)), np.ones((8, 3), np.float32), np.int32(1))
    counts = []
    for version in ((0, 11, 2), (0, 12, 0)):
        monkeypatch.setattr(quirks.version, "__version_info__", version)
        counts.append(sum(op.name == "stablehlo.optimization_barrier" for op in walk(sequential(module).root)))
    assert counts == [2, 0]
