from __future__ import annotations

import pytest

from pyshardy.errors import InvalidModuleError
from pyshardy.ir.dtypes import element_bits, tensor_bytes


@pytest.mark.parametrize(
    ("element", "bits"),
    [
        ("i1", 8),
        ("i2", 2),
        ("i4", 4),
        ("ui4", 4),
        ("i8", 8),
        ("si16", 16),
        ("ui32", 32),
        ("i64", 64),
        ("index", 64),
        ("f4E2M1FN", 4),
        ("f6E3M2FN", 6),
        ("f8E5M2", 8),
        ("f8E4M3B11FNUZ", 8),
        ("f16", 16),
        ("bf16", 16),
        ("tf32", 32),
        ("f32", 32),
        ("f64", 64),
        ("complex<f32>", 64),
        ("complex<f64>", 128),
        ("!quant.uniform<i8:f32, 0.5:3>", 8),
        ("!quant.uniform<i4:f32:0, {0.5,0.25}>", 4),
    ],
)
def test_bits_of_an_element(element: str, bits: int) -> None:
    assert element_bits(element) == bits


@pytest.mark.parametrize("element", ["", "!stablehlo.token", "tuple<i32>", "none", "vector<2xf32>", "complex<none>"])
def test_types_of_unknown_size_are_refused(element: str) -> None:
    with pytest.raises(InvalidModuleError) as caught:
        element_bits(element)
    assert caught.value.doing == "looking up the size of an element type"
    assert caught.value.needed == "a type of known size"
    assert element.removeprefix("complex<").removesuffix(">") in (caught.value.got or "")


@pytest.mark.parametrize(
    ("shape", "element", "size"),
    [
        ((), "f32", 4),
        ((), "i1", 1),
        ((8, 4), "f32", 128),
        ((0, 4), "f32", 0),
        ((3,), "i4", 2),
        ((4,), "i4", 2),
        ((9,), "i1", 9),
        ((2**20, 2**20), "complex<f64>", 2**44),
    ],
)
def test_bytes_of_a_tensor(shape: tuple[int, ...], element: str, size: int) -> None:
    assert tensor_bytes(shape, element) == size
