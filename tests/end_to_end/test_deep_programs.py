"""`pyshardy run` on deep programs: rounding is no error, an error of a percent is one, and chaos says nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from end_to_end.deep_programs import DEEP, chaotic

import pyshardy
from pyshardy.cli.verdict import exit_status
from pyshardy.runtime.compare import OutputDifference, Verdict, compare_outputs
from pyshardy.runtime.execute import run_on_one_device
from pyshardy.runtime.input_uses import input_uses
from pyshardy.runtime.inputs import random_inputs
from pyshardy.runtime.noise import LIMIT, Noise
from pyshardy.runtime.rounding import noises


class Ran(NamedTuple):
    """The outputs of eight devices and of one, under their names, and what rounding does to them."""

    names: list[str]
    found: list[jax.Array]
    expected: list[np.ndarray]
    noises: list[Noise]

    def compare(self, found: list[jax.Array] | None = None) -> list[OutputDifference]:
        return compare_outputs(self.names, self.found if found is None else found, self.expected, self.noises)


def ran(module: pyshardy.Module, seed: int = 0) -> Ran:
    partition = pyshardy.partition(module)
    inputs = random_inputs(partition.inputs, seed, input_uses(module))
    found = [*partition.run_flat(inputs)]
    expected = [np.asarray(output) for output in run_on_one_device(module, inputs)]
    known = noises(module, inputs, expected)
    assert known is not None
    return Ran([port.name for port in partition.outputs], found, expected, known)


@cache
def deep(name: str) -> Ran:
    return ran(DEEP[name]().load())


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", DEEP)
def test_a_deep_program_raises_no_false_alarm(name: str) -> None:
    differences = deep(name).compare()
    assert [difference.name for difference in differences if difference.verdict() is Verdict.DIFFER] == []
    assert all(np.isfinite(np.asarray(output, np.float64)).all() for output in deep(name).expected)
    assert max(difference.noise_ratio for difference in differences) < LIMIT / 2


IN_F32 = [name for name in DEEP if not name.endswith(("16", "mixed", "layer"))]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", IN_F32)
def test_in_f32_nothing_is_left_in_doubt(name: str) -> None:
    for difference in deep(name).compare():
        assert difference.verdict() is Verdict.AGREE
        assert not difference.is_blunt


def changed(array: jax.Array, change: Callable[[np.ndarray, Any], np.ndarray]) -> jax.Array:
    """An array of which the part of every device is changed, given the device."""
    parts = [jax.device_put(change(np.array(s.data), s.device), s.device) for s in array.addressable_shards]
    return jax.make_array_from_single_device_arrays(array.shape, array.sharding, parts)


def everywhere(part: np.ndarray, _: Any) -> np.ndarray:
    return (part * 1.01).astype(part.dtype)


def on_one_device(part: np.ndarray, device: Any) -> np.ndarray:
    return everywhere(part, device) if device.id == 5 else part


def in_one_element(part: np.ndarray, device: Any) -> np.ndarray:
    """A percent more in one element that is as large as most."""
    if device.id != 5:
        return part
    sizes = np.abs(part.astype(float)).reshape(-1)
    index = int(np.argsort(sizes)[3 * len(sizes) // 4])
    flat = part.reshape(-1).copy()
    flat[index] *= part.dtype.type(1.01)
    return flat.reshape(part.shape)


CHANGES = [everywhere, on_one_device, in_one_element]


@pytest.mark.sampled(16)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", IN_F32)
def test_an_error_of_a_percent_in_any_output_is_noticed(name: str, change: Callable[..., np.ndarray]) -> None:
    right = deep(name)
    for index, output in enumerate(right.found):
        if not np.issubdtype(output.dtype, np.floating):
            continue
        wrong = [*right.found[:index], changed(output, change), *right.found[index + 1 :]]
        verdicts = [difference.verdict() for difference in right.compare(wrong)]
        assert verdicts[index] is Verdict.DIFFER, right.names[index]
        assert verdicts.count(Verdict.DIFFER) == 1


NARROW = ["residual mlp bf16", "residual mlp f16", "recurrent bf16", "transformer training mixed"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NARROW)
def test_in_a_narrow_type_an_error_of_all_of_a_large_output_is_noticed(name: str) -> None:
    right = deep(name)
    large = [index for index, output in enumerate(right.found) if output.size >= 1000]
    assert large
    for index in large:
        assert right.noises[index].factor_resolution < 0.02
        doubled = 1 + max(0.01, 2 * right.noises[index].factor_resolution)
        wrong = changed(right.found[index], lambda part, _, factor=doubled: (part * factor).astype(part.dtype))
        found = right.compare([*right.found[:index], wrong, *right.found[index + 1 :]])
        assert found[index].verdict() is Verdict.DIFFER, right.names[index]


def test_an_error_as_large_as_the_comparison_says_is_noticed() -> None:
    right = deep("recurrent bf16")
    noise = right.noises[0]
    assert 0.1 < noise.resolution < 1
    sizes = np.abs(right.expected[0].astype(float)).reshape(-1)
    typical = np.argsort(sizes)[3 * len(sizes) // 4]
    wrong = right.expected[0].astype(float)
    wrong.flat[typical] *= 1 + 2 * noise.resolution
    noticed = wrong.astype(right.expected[0].dtype)
    assert noise.ratio(noticed) > LIMIT
    assert right.compare([noticed, *right.found[1:]])[0].is_blunt  # less might not have been


def test_a_low_layer_does_not_hide_errors_before_it() -> None:
    right = deep("one low layer")
    before, behind = right.compare()
    assert not before.is_blunt
    assert behind.is_blunt
    assert right.compare([changed(right.found[0], in_one_element), right.found[1]])[0].verdict() is Verdict.DIFFER


def test_of_chaos_nothing_is_said() -> None:
    differences = ran(chaotic().load()).compare()
    assert [difference.verdict() for difference in differences] == [Verdict.CANNOT_TELL]
    assert differences[0].noise.share > 0.5
    assert exit_status(differences, None) == 3


def test_the_same_program_has_the_same_noise() -> None:
    first, second = (ran(DEEP["relu mlp"]().load()) for _ in range(2))
    for one, other in zip(first.noises, second.noises):
        np.testing.assert_array_equal(one.of_elements, other.of_elements)
