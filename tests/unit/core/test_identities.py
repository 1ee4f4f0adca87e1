"""Values that change nothing."""

from __future__ import annotations

import numpy as np
import pytest
from jaxlib.mlir import ir

from pyshardy.core.identities import extreme_text, identity_text, one_text, zero_text
from pyshardy.ir.context import make_context

_COMBINE = {
    "add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
_INTEGERS = ("i8", "ui8", "i32", "ui64")
_FLOATS = {"f16": "uint16", "f32": "uint32", "f64": "uint64"}


@pytest.mark.parametrize("element", _INTEGERS)
@pytest.mark.parametrize("combiner", _COMBINE)
def test_integers_stay_as_they_are(combiner: str, element: str) -> None:
    dtype = np.dtype(element.replace("u", "").replace("i", "uint" if element[0] == "u" else "int"))
    info = np.iinfo(dtype)
    values = np.array([info.min, 0, 1, 5, info.max], dtype)
    identity = np.array(int(identity_text(combiner, element) or ""), dtype)
    assert (_COMBINE[combiner](values, identity) == values).all()


@pytest.mark.parametrize("element", _FLOATS)
@pytest.mark.parametrize("largest", [False, True])
def test_floats_have_infinities(element: str, largest: bool) -> None:
    bits = np.array(int(extreme_text(element, largest) or "", 16), _FLOATS[element])
    assert bits.view(element.replace("f", "float")) == (np.inf if largest else -np.inf)


def test_types_without_order_have_no_extremes() -> None:
    assert extreme_text("complex<f64>", largest=True) is None
    assert identity_text("maximum", "complex<f32>") is None
    assert identity_text("maximum", "f8E4M3FN") == "0xFE"
    assert identity_text("divide", "f32") is None


def test_truth_values_and_complex_numbers() -> None:
    assert [identity_text(name, "i1") for name in ("and", "or", "maximum", "minimum")] == [
        "true",
        "false",
        "false",
        "true",
    ]
    assert (zero_text("complex<f64>"), one_text("complex<f64>")) == ("(0.0,0.0)", "(1.0,0.0)")


@pytest.mark.parametrize(
    "element", ["i1", "i2", "ui4", "i64", "index", "bf16", "tf32", "f64", "f8E4M3FN", "complex<f32>", "complex<f64>"]
)
def test_mlir_reads_zero_and_one_of_every_type(element: str) -> None:
    with make_context():
        zero, one = (
            ir.Attribute.parse(f"dense<{text(element)}> : tensor<{element}>") for text in (zero_text, one_text)
        )
    assert zero != one
