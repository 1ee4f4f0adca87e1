"""Programs that were once partitioned wrongly, or refused, compute the same on several devices as on one."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from end_to_end import hard_programs, numbers_compare, out_of_bounds, two_meshes
from end_to_end.number_programs import OP_KINDS, op_program
from end_to_end.numbers_compare import Verdict, compare_numbers, difference, difference_on_devices
from jax.sharding import NamedSharding, PartitionSpec

import pyshardy
from pyshardy.frontend.interface import output_tensors
from pyshardy.runtime.execute import run_on_one_device

PROGRAMS = {**hard_programs.PROGRAMS, **out_of_bounds.PROGRAMS, **two_meshes.PROGRAMS}
NAN, INF = float("nan"), float("inf")


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", PROGRAMS)
def test_devices_give_what_one_device_gives(name: str) -> None:
    for seed in range(3):
        found = compare_numbers(PROGRAMS[name], seed, is_wide=name in out_of_bounds.PROGRAMS)
        assert found.verdict is Verdict.EQUAL, found.details


def test_a_wrong_number_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run_flat = pyshardy.Partition.run_flat

    def wrong(*args: Any, **options: Any) -> Any:
        return [np.asarray(output) + 1 for output in run_flat(*args, **options)]

    name = next(iter(PROGRAMS))
    assert compare_numbers(PROGRAMS[name], 0).verdict is Verdict.EQUAL
    monkeypatch.setattr(pyshardy.Partition, "run_flat", wrong)
    assert compare_numbers(PROGRAMS[name], 0).verdict is Verdict.DIFFERENT


@pytest.mark.parametrize("kind", OP_KINDS)
def test_programs_of_one_op_return_what_it_gives(kind: str) -> None:
    assert output_tensors(pyshardy.load(op_program(kind, 1)).root)


def test_a_wrong_copy_on_one_device_is_found() -> None:
    devices = jax.devices()[:2]
    copies = NamedSharding(jax.sharding.Mesh(np.array(devices), ("x",)), PartitionSpec())
    parts = [jax.device_put(np.full(3, value, np.float32), device) for value, device in zip((1, 2), devices)]
    array = jax.make_array_from_single_device_arrays((3,), copies, parts)
    assert not difference(np.asarray(array), np.ones(3, np.float32))
    assert "on device 1" in difference_on_devices(array, np.ones(3, np.float32))
    assert not difference_on_devices(jax.device_put(np.ones(3), copies), np.ones(3, jax.numpy.ones(1).dtype))


@pytest.mark.parametrize(
    ("found", "expected"), [(1.0, 1.001), (NAN, 1.0), (1.0, NAN), (INF, -INF), (INF, 1.0), (1.0, INF), (NAN, INF)]
)
def test_numbers_that_differ(found: float, expected: float) -> None:
    assert difference(np.array([0, found], np.float32), np.array([0, expected], np.float32))
    assert difference(np.array([found], np.float32), np.array([expected], np.float32), is_exact=True)


def test_rounding_counts_for_more_where_a_program_enlarges_it() -> None:
    module = pyshardy.load("""
    func.func @main(%x: tensor<8xf32>, %i: tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xi32>) {
      %c = stablehlo.constant dense<1.0e5> : tensor<8xf32>
      %0 = stablehlo.multiply %x, %c : tensor<8xf32>
      %1 = stablehlo.sine %0 : tensor<8xf32>
      return %1, %x, %i : tensor<8xf32>, tensor<8xf32>, tensor<8xi32>
    }""")
    inputs = [np.arange(1, 9, dtype=np.float32), np.arange(8, dtype=np.int32)]
    expected = run_on_one_device(module, inputs)
    sine, same, integers = numbers_compare._noise(module, inputs, expected)
    assert sine is not None and same is not None and integers is None
    assert sine.max() > 0.01 and same.max() < 1e-5
    one = np.asarray(expected[0])
    assert not difference(one + 0.01, one, noise=np.full(8, 0.01))
    assert difference(one + 0.02, one, noise=np.full(8, 0.01))


def test_complex_numbers_that_differ() -> None:
    for found, expected in ((1.0, 1.001), (NAN, 1j), (1j, INF), (1, 1j)):
        assert difference(np.array([found], np.complex64), np.array([expected], np.complex64))


@pytest.mark.parametrize("number", [0.0, 1.0, NAN, INF, -INF])
def test_numbers_that_are_the_same(number: float) -> None:
    for is_exact in (False, True):
        assert not difference(np.array([number, 2], np.float32), np.array([number, 2], np.float32), is_exact)


def test_a_number_a_little_off_is_wrong_where_nothing_is_computed() -> None:
    one, other = np.array([1.0], np.float32), np.array([np.nextafter(np.float32(1), np.float32(2))])
    assert not difference(one, other)
    assert difference(one, other, is_exact=True)
    assert difference(np.array([1]), np.array([1], np.int8))
