"""What rounding does to an output, and what is farther off than that."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from pyshardy.runtime.compare import Verdict, compare_outputs
from pyshardy.runtime.noise import LIMIT, Noise

RANDOM = np.random.default_rng(0)
VALUES = RANDOM.normal(0, 1, 1000).astype(np.float32)


def moved(values: np.ndarray, by: float) -> list[np.ndarray]:
    """The values, a few times, with random moves of one size."""
    return [(values + by * RANDOM.normal(0, 1, values.shape)).astype(values.dtype) for _ in range(4)]


def test_the_noise_is_about_as_large_as_the_moves() -> None:
    noise = Noise(VALUES, moved(VALUES, 1e-3))
    assert 2e-3 < np.median(noise.of_elements) < 6e-3
    assert 1e-3 < noise.share < 3e-3
    assert noise.ratio(moved(VALUES, 1e-3)[0]) < 2
    assert noise.ratio(moved(VALUES, 1e-1)[0]) > LIMIT


@pytest.mark.parametrize("index", range(0, 1000, 97))
def test_one_wrong_element_is_noticed(index: int) -> None:
    noise = Noise(VALUES, moved(VALUES, 1e-5))
    wrong = VALUES.copy()
    wrong[index] += 0.01
    assert noise.ratio(wrong) > LIMIT
    assert noise.ratio(VALUES) == 0


def test_small_rows_keep_their_small_noise() -> None:
    table = np.stack([VALUES, 1e4 * VALUES])
    trials = [np.stack(rows) for rows in zip(moved(VALUES, 1e-5), moved(1e4 * VALUES, 0.1))]
    wrong = table.copy()
    wrong[0, np.abs(VALUES).argmax()] *= 1.01
    assert Noise(table, trials).ratio(wrong) > LIMIT


def test_a_factor_that_is_too_small_to_see_in_one_element_is_noticed() -> None:
    noise = Noise(VALUES, moved(VALUES, 0.02))
    wrong = VALUES * np.float32(1.02)
    assert noise.ratio_of_elements(wrong) < 2
    assert noise.ratio(wrong) > LIMIT
    assert noise.ratio(wrong[:500], slice(500)) > noise.ratio_of_elements(wrong[:500], slice(500))
    assert noise.factor_resolution < 0.02 < noise.resolution


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", jnp.bfloat16, "complex64"])
def test_a_step_of_the_type_is_never_an_error(dtype: str) -> None:
    values = VALUES.astype(dtype)
    step = float(jnp.finfo(dtype).eps)
    off = values.copy()
    off[3] = off[3] * (1 + step)
    assert Noise(values, [values]).ratio(off) <= LIMIT
    off[3] = off[3] * (1 + 0.2)
    assert Noise(values, [values]).ratio(off) > LIMIT


def test_whole_numbers_move_only_where_rounding_moves_them() -> None:
    numbers = np.arange(1000) % 50
    assert Noise(numbers, [numbers]).ratio(np.where(numbers == 7, 8, numbers)) == np.inf
    flipped = numbers.copy()
    flipped[::100] += 1
    noise = Noise(numbers, [flipped])
    assert noise.share == 0.01
    assert noise.ratio(np.roll(flipped - numbers, 5) + numbers) <= 1
    assert noise.ratio(np.where(np.arange(1000) % 10, numbers, numbers + 1)) > LIMIT
    assert noise.ratio(flipped[:1], slice(1)) <= 1


def test_booleans() -> None:
    flags = VALUES > 0
    assert Noise(flags, [flags]).ratio(~flags) == np.inf
    assert Noise(flags, [flags]).ratio(flags) == 0


def test_numbers_that_rounding_makes_or_takes_say_nothing() -> None:
    values = np.array([1.0, np.nan, np.inf, 2.0, np.nan])
    noise = Noise(values, [np.array([1.0, np.nan, np.inf, np.nan, 3.0])])
    assert noise.of_elements[2] == 0
    np.testing.assert_array_equal(np.isinf(noise.of_elements), [False, False, False, True, True])
    assert noise.unknown == pytest.approx(3 / 5)
    assert noise.ratio(np.array([1.0, np.nan, np.inf, 5.0, 6.0])) == 0
    assert noise.ratio(np.array([1.0, np.nan, -np.inf, 2.0, np.nan])) == np.inf
    assert noise.ratio(np.array([1.0, 1.0, np.inf, 2.0, np.nan])) == np.inf


def test_zeros_and_nothing() -> None:
    zeros = np.zeros(4, np.float32)
    noise = Noise(zeros, [zeros])
    assert (noise.share, noise.resolution, noise.unknown, noise.ratio(zeros)) == (0, 0, 0, 0)
    assert noise.ratio(zeros + 1e-30) == np.inf
    empty = Noise(np.zeros((0, 3)), [np.zeros((0, 3))])
    assert empty.ratio(np.zeros((0, 3))) == 0


def test_zeros_among_numbers_do_not_make_a_comparison_blunt() -> None:
    half = np.maximum(VALUES, 0)
    assert Noise(half, [half]).resolution < 1e-4


@pytest.mark.parametrize(
    ("move", "verdict"), [(1e-6, Verdict.DIFFER), (1e-2, Verdict.AGREE), (3.0, Verdict.CANNOT_TELL)]
)
def test_the_noise_decides(move: float, verdict: Verdict) -> None:
    found = moved(VALUES, 1e-2)[0]
    (difference,) = compare_outputs(["x"], [found], [VALUES], [Noise(VALUES, moved(VALUES, move))])
    assert difference.verdict() is verdict
    assert difference.verdict(1.0) is Verdict.AGREE
    assert difference.verdict(1e-4) is Verdict.DIFFER


def test_what_is_equal_in_every_bit_agrees_whatever_rounding_does() -> None:
    (difference,) = compare_outputs(["x"], [VALUES], [VALUES], [Noise(VALUES, moved(VALUES, 3.0))])
    assert difference.verdict() is Verdict.AGREE


def test_another_shape_differs() -> None:
    (difference,) = compare_outputs(["x"], [VALUES[:3]], [VALUES], [Noise(VALUES, [VALUES])])
    assert difference.verdict() is Verdict.DIFFER
