"""Programs that round otherwise: what is moved, by how much, and what is not."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import pyshardy
from pyshardy.runtime.execute import run_on_one_device
from pyshardy.runtime.rounding import noises, nudged, run_rounding_otherwise

RANDOM = np.random.default_rng(0)


def trials(fn, *args) -> tuple[np.ndarray, list[np.ndarray]]:
    """The first output of a function, and the same rounded otherwise."""
    module = pyshardy.load(fn, *args)
    right = np.asarray(run_on_one_device(module, args)[0])
    return right, [outputs[0] for outputs in run_rounding_otherwise(module, args)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64", "float8_e4m3fn"])
def test_inputs_move_by_a_step(dtype: str) -> None:
    array = RANDOM.normal(0, 1, (50, 4)).astype(np.dtype(dtype))
    other = nudged(array, np.random.default_rng(1))
    assert (other.dtype, other.shape) == (array.dtype, array.shape)
    step = float(ml_dtypes.finfo(np.float32 if dtype == "complex64" else dtype).eps)
    wide = complex if dtype == "complex64" else float
    share = np.abs(other.astype(wide) - array.astype(wide)) / np.abs(array.astype(wide))
    assert share.max() <= 2.01 * step
    assert (share > 0).mean() > 0.4
    np.testing.assert_array_equal(other, nudged(array, np.random.default_rng(1)))


@pytest.mark.parametrize("array", [np.arange(9), np.arange(9) > 3, np.arange(2000, dtype=np.float32),
                                   np.array([0.5, -0.25, 0, np.inf, np.nan], np.float32)])  # fmt: skip
def test_whole_numbers_and_powers_of_two_do_not_move(array: np.ndarray) -> None:
    np.testing.assert_array_equal(nudged(array, np.random.default_rng(0)), array)


def test_a_copy_moves_by_a_step_and_a_chain_by_more() -> None:
    x = RANDOM.normal(0, 1, 1000).astype(np.float32)
    right, once = trials(lambda x: x.reshape(10, 100), x)
    assert len(once) > 2
    assert 0 < np.abs(once[0] / right - 1).max() < 3e-7
    right, often = trials(lambda x: jax.lax.fori_loop(0, 100, lambda _, x: x * 1.001 + 1e-9, x), x)
    assert 5e-7 < np.abs(often[0] / right - 1).max() < 1e-4


@pytest.mark.slow
def test_results_move_where_no_input_does() -> None:
    right, others = trials(
        lambda key: jax.random.normal(jax.random.wrap_key_data(key), (100,)), np.array([0, 1], "uint32")
    )
    assert 0 < np.abs(others[0] - right).max() < 1e-4


def test_a_narrow_type_in_between_moves_by_its_steps() -> None:
    x, w = (RANDOM.normal(0, 1, (32, 32)).astype(np.float32) for _ in range(2))
    _, wide = trials(lambda x, w: x @ w, x, w)
    right, narrow = trials(lambda x, w: (x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)).astype(jnp.float32), x, w)
    assert 1e-3 < np.abs(narrow[0] - right).max() / np.abs(right).max() < 0.1
    assert np.abs(wide[0] - x @ w).max() / np.abs(right).max() < 1e-5


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.max(0),
        lambda x: jnp.sort(x, 0),
        lambda x: jnp.where(x > 0, 1.0, 2.0),
        lambda x: (jnp.arange(64.0) + 1) * 2 + 0 * x[:, 0],
        lambda x: jnp.floor(jnp.arange(64.0) / 4) + 0 * x[:, 0],
        lambda x: x.at[3].set(0.5),
    ],
)
def test_what_is_exact_stays(fn) -> None:
    x = RANDOM.integers(-100, 100, (64, 4)).astype(np.float32) / 4
    right, others = trials(fn, x)
    for other in others:
        np.testing.assert_array_equal(other, right)


@pytest.mark.slow
@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.sum(0),
        lambda x: jnp.cumsum(x, 0),
        lambda x: jnp.zeros((8, 4)).at[jnp.arange(64) % 8].add(x),
        lambda x: jnp.linalg.cholesky(x.T @ x),
        lambda x: jnp.fft.fft(x).real,
        lambda x: jax.lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
        lambda x: jax.lax.conv_general_dilated(x[None, None], jnp.full((1, 1, 3, 3), 0.3), (1, 1), "SAME"),
        lambda x: jax.scipy.special.erf(x),
        lambda x: jnp.exp(1j * x).imag,
        lambda x: x.astype(jnp.float16) * 3,
    ],
)
def test_what_is_rounded_moves(fn) -> None:
    right, others = trials(fn, RANDOM.normal(0, 1, (64, 4)).astype(np.float32))
    assert all(np.any(other != right) for other in others)
    assert all(np.allclose(other.astype(float), right.astype(float), 1e-2, 1e-2) for other in others)


def test_the_same_every_time() -> None:
    x = RANDOM.normal(0, 1, (32, 4)).astype(np.float32)
    for first, second in zip(trials(jnp.sin, x)[1], trials(jnp.sin, x)[1]):
        np.testing.assert_array_equal(first, second)


def test_programs_that_call_python_run_no_oftener() -> None:
    seen: list[int] = []

    def look(x: np.ndarray) -> np.ndarray:
        seen.append(1)
        return x

    x = np.ones(4, np.float32)
    module = pyshardy.load(lambda x: jax.pure_callback(look, jax.ShapeDtypeStruct((4,), "float32"), x), x)
    assert noises(module, [x], [x]) is None
    assert not seen
