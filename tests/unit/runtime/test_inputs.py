"""Inputs: random ones, and those of a file."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from pyshardy.errors import ShardyError, UsageError
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.runtime.arrays import jax_dtype
from pyshardy.runtime.inputs import inputs_from_file, random_inputs


def tensor(element: str = "f32", shape: tuple[int, ...] = (64, 4), name: str = "x") -> InterfaceTensor:
    return InterfaceTensor(name, 0, shape, element, None)


@pytest.mark.parametrize(
    ("element", "dtype"),
    [
        ("f32", "float32"), ("f64", "float64"), ("f16", "float16"), ("bf16", "bfloat16"),
        ("i8", "int8"), ("i32", "int32"), ("i64", "int64"), ("ui8", "uint8"), ("ui32", "uint32"),
        ("i1", "bool"), ("i4", "int4"), ("ui4", "uint4"),
        ("f8E4M3FN", "float8_e4m3fn"), ("f8E5M2", "float8_e5m2"), ("f8E4M3B11FNUZ", "float8_e4m3b11fnuz"),
        ("complex<f32>", "complex64"), ("complex<f64>", "complex128"),
    ],
)  # fmt: skip
def test_types_and_shapes(element: str, dtype: str) -> None:
    (array,) = random_inputs([tensor(element)])
    assert (array.dtype, array.shape) == (jax_dtype(element), (64, 4))
    assert array.dtype.name == dtype


@pytest.mark.parametrize("element", ["index", "tf32", "i128", "f80", "!quant.uniform<i8:f32>", "tuple<>"])
def test_types_that_jax_does_not_have(element: str) -> None:
    with pytest.raises(ShardyError, match="running a module: got element type .*, needed one that JAX has"):
        random_inputs([tensor(element)])


def test_numbers_are_normal_and_integers_small_and_not_negative() -> None:
    normal, whole, coins, small, wave = random_inputs(
        [tensor(element, (4000,)) for element in ("f32", "i32", "i1", "i4", "complex<f32>")]
    )
    assert abs(normal.mean()) < 0.1
    assert 0.9 < normal.std() < 1.1
    assert set(np.unique(whole)) == set(range(8))
    assert 0.4 < coins.mean() < 0.6
    assert set(np.unique(small.astype(int))) <= set(range(8))
    assert abs(wave.real.std() - wave.imag.std()) < 0.1
    assert not np.array_equal(wave.real, wave.imag)


def test_the_seed_decides() -> None:
    tensors = [tensor(), tensor("i32", ()), tensor("bf16", (0, 3))]
    first, again, other = (random_inputs(tensors, seed) for seed in (1, 1, 2))
    for one, same in zip(first, again):
        np.testing.assert_array_equal(one, same)
    assert not np.array_equal(first[0], other[0])
    assert not np.array_equal(*random_inputs([tensor(), tensor()]))
    assert first[1].shape == ()
    assert first[2].dtype == ml_dtypes.bfloat16


def test_no_inputs() -> None:
    assert random_inputs([]) == []


def test_a_dynamic_shape() -> None:
    with pytest.raises(UsageError, match="drawing random inputs: got the dynamic shape of x, needed static shapes"):
        random_inputs([tensor("f32", (4, -1))])


def save(path: Path, **arrays: np.ndarray) -> Path:
    np.savez(path, **arrays)
    return path


def test_arrays_under_the_names_of_the_inputs(tmp_path: Path) -> None:
    path = save(tmp_path / "in.npz", **{"params['w']": np.ones(3), "x": np.zeros(2), "more": np.ones(1)})
    found = inputs_from_file(path, [tensor(name="x"), tensor(name="params['w']")])
    assert [array.shape for array in found] == [(2,), (3,)]


def test_arrays_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    np.savez(path, np.ones(3), np.zeros(2))
    assert [array.shape for array in inputs_from_file(str(path), [tensor(name="x"), tensor(name="y")])] == [(3,), (2,)]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.ones(3)}, "got the arrays x, needed one for each of x, y"),
        ({"a": np.ones(3), "b": np.ones(3), "c": np.ones(3)}, "got the arrays a, b, c, needed one for each of x, y"),
        ({}, "got the arrays none, needed"),
    ],
)
def test_arrays_that_do_not_fit(arrays: dict[str, np.ndarray], message: str, tmp_path: Path) -> None:
    path = save(tmp_path / "in.npz", **arrays)
    with pytest.raises(UsageError, match=message):
        inputs_from_file(path, [tensor(name="x"), tensor(name="y")])


@pytest.mark.parametrize("content", [None, b"", b"no archive", b"PK\x03\x04broken"])
def test_files_that_are_no_archive(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=r"reading inputs from .*in\.npz: got .*, needed an \.npz file of arrays"):
        inputs_from_file(path, [tensor()])


def test_a_single_array_is_no_archive(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.ones(3))
    with pytest.raises(UsageError, match=r"needed an \.npz file of arrays"):
        inputs_from_file(tmp_path / "in.npy", [tensor()])


def test_a_damaged_archive(tmp_path: Path) -> None:
    path = save(tmp_path / "in.npz", x=np.arange(1000.0))
    content = bytearray(path.read_bytes())
    content[500] ^= 255
    path.write_bytes(content)
    with pytest.raises(UsageError, match="reading inputs from .*CRC"):
        inputs_from_file(path, [tensor()])


def test_objects_are_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    np.savez(path, x=np.array([{}], object))
    with pytest.raises(UsageError, match=r"needed an \.npz file of arrays"):
        inputs_from_file(path, [tensor()])


def test_a_directory(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="got .*directory"):
        inputs_from_file(tmp_path, [tensor()])
