"""The distance between outputs, and that it is never too small."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from pyshardy.runtime.compare import OutputDifference, compare_arrays, compare_outputs

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("found", "expected", "absolute", "relative"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0, 0.0),
        ([1.0, 2.0], [1.0, 3.0], 1.0, 0.25),
        ([1.0, 2.0], [0.0, 2.0], 1.0, 1.0),
        ([-1.0], [1.0], 2.0, 1.0),
        ([INF, -INF, NAN], [INF, -INF, NAN], 0.0, 0.0),
        ([INF], [-INF], INF, INF),
        ([INF], [1.0], INF, INF),
        ([1.0], [INF], INF, INF),
        ([NAN], [1.0], INF, INF),
        ([1.0], [NAN], INF, INF),
        ([NAN, 1.0], [NAN, 2.0], 1.0, 1 / 3),
        ([1 + 1j], [1 - 1j], 2.0, 2 / (1 + 2**0.5)),
        ([complex(NAN, 0)], [complex(NAN, 0)], 0.0, 0.0),
        ([], [], 0.0, 0.0),
        (3.0, 3.5, 0.5, 0.5 / 4.5),
        ([True, False], [True, True], 1.0, 0.5),
    ],
)
def test_distances(found, expected, absolute: float, relative: float) -> None:
    difference = compare_arrays("x", np.array(found), np.array(expected))
    assert difference.max_absolute_error == pytest.approx(absolute)
    assert difference.max_relative_error == pytest.approx(relative)


@pytest.mark.parametrize(("found", "expected"), [((2, 3), (3, 2)), ((1, 4), (4,)), ((), (1,)), ((0,), (0, 1))])
def test_other_shapes_are_infinitely_far_away(found: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert compare_arrays("x", np.ones(found), np.ones(expected)) == OutputDifference("x", INF, INF)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_large_integers_are_compared_exactly(dtype) -> None:
    large = np.array([2**62, 2**62 + 1], dtype)
    assert compare_arrays("x", large, large).max_absolute_error == 0
    assert compare_arrays("x", large, large[::-1]).max_absolute_error == 1


@pytest.mark.parametrize("dtype", [jnp.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, np.float16, np.uint8])
def test_small_types(dtype) -> None:
    one, two = np.array([1, 2], dtype), np.array([1, 4], dtype)
    assert compare_arrays("x", one, one).max_absolute_error == 0
    assert compare_arrays("x", one, two).max_absolute_error == 2


def test_outputs_have_their_names() -> None:
    found = compare_outputs(["a", "b"], [jnp.ones(2), [1, 2]], [jnp.ones(2), np.array([1, 5])])
    assert found == [OutputDifference("a", 0.0, 0.0), OutputDifference("b", 3.0, 0.5)]


@pytest.mark.parametrize("count", [0, 2])
def test_a_missing_output_is_noticed(count: int) -> None:
    with pytest.raises(ValueError, match="zip"):
        compare_outputs(["a"], [np.ones(1)], [np.ones(1)] * count)


def test_a_copy_on_another_device_counts() -> None:
    """A replicated array looks right where its first copy is."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("x",))
    replicated = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    right, wrong = (jax.device_put(np.full(3, value), device) for value, device in zip((1.0, 1.5), jax.devices()))
    array = jax.make_array_from_single_device_arrays((3,), replicated, [right, wrong])
    assert compare_outputs(["x"], [array], [np.ones(3)]) == [OutputDifference("x", 0.5, 0.25)]
    assert compare_outputs(["x"], [jax.device_put(np.ones(3), replicated)], [np.ones(3)]) == [
        OutputDifference("x", 0.0, 0.0)
    ]
