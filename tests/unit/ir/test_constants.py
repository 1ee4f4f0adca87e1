"""The contents of constants."""

from __future__ import annotations

from typing import Any

import pytest

from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.constants import constant_integer, is_splat, margins_of, splat_of, with_type
from pyshardy.ir.nodes import Value
from pyshardy.transforms.padding.constants import filler_of
from pyshardy.transforms.padding.padder import Padding

from .reading import find, read


def constant(text: str, name: str = "stablehlo.constant") -> Value:
    """A constant; `text` is its attribute."""
    type = text.rpartition(" : ")[2]
    module = read(f"func.func @main() -> {type} {{\n%0 = {name} {text}\nreturn %0 : {type}\n}}")
    return find(module, name).result


@pytest.mark.parametrize(
    ("text", "number", "integer"),
    [
        ("dense<7> : tensor<4xi32>", 7, 7),
        ("dense<-1> : tensor<i8>", -1, -1),
        ("dense<18446744073709551615> : tensor<ui64>", 2**64 - 1, 2**64 - 1),
        ("dense<[5]> : tensor<1xi64>", 5, 5),
        ("dense<1> : tensor<3xi4>", 1, 1),
        ("dense<true> : tensor<2xi1>", True, None),
        ("dense<1.5> : tensor<2xf32>", 1.5, None),
        ("dense<0.0> : tensor<2xbf16>", 0.0, None),
        ("dense<[1, 2]> : tensor<2xi32>", None, None),
        ("dense<(1.0, 0.0)> : tensor<2xcomplex<f32>>", None, None),
    ],
)
@pytest.mark.parametrize("name", ["stablehlo.constant", "sdy.constant"])
def test_numbers(text: str, number: Any, integer: int | None, name: str) -> None:
    value = constant(text, name)
    assert (splat_of(value), constant_integer(value)) == (number, integer)
    assert is_splat(value.owner.attrs["value"]) == ("[1, 2]" not in text)  # type: ignore[union-attr]


def test_what_is_no_constant_has_no_number() -> None:
    module = read("func.func @main(%a: tensor<i32>) -> tensor<i32> {\nreturn %a : tensor<i32>\n}")
    (value,) = find(module, "func.return").operands
    assert (splat_of(value), constant_integer(value), filler_of(value)) == (None, None, None)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("dense<0> : tensor<i32>", Padding.ZERO),
        ("dense<-0.0> : tensor<f32>", Padding.ZERO),
        ("dense<false> : tensor<i1>", Padding.ZERO),
        ("dense<1.0> : tensor<4xbf16>", Padding.ONE),
        ("dense<true> : tensor<i1>", Padding.ONE),
        ("dense<2> : tensor<i32>", None),
        ("dense<0x7FC00000> : tensor<f32>", None),
        ("dense<[0, 0, 1]> : tensor<3xi32>", None),
    ],
)
def test_fillers(text: str, kind: Padding | None) -> None:
    assert filler_of(constant(text)) is kind


@pytest.mark.parametrize("text", ["dense<7> : tensor<4xi32>", "dense<(1.0, 2.0)> : tensor<4xcomplex<f32>>"])
def test_another_shape(text: str) -> None:
    lines = [f"%{place} = stablehlo.constant {one}" for place, one in enumerate((text, text.replace("4x", "2x3x")))]
    module = read("\n".join(["func.func @main() {", *lines, "return", "}"]))
    one, other = (find(module, "stablehlo.constant", place) for place in (0, 1))
    with other.result.type.mlir.context:
        assert with_type(one.attrs["value"], other.result.type, AttrTable()) == other.attrs["value"]


def test_margins() -> None:
    whole, one = (constant(f"dense<{text}> : tensor<2x2xi64>") for text in ("[[1, 2], [3, 4]]", "1"))
    assert margins_of(whole.owner.attrs["value"], 2) == [(1, 2), (3, 4)]  # type: ignore[union-attr]
    assert margins_of(one.owner.attrs["value"], 2) == [(1, 1), (1, 1)]  # type: ignore[union-attr]
    assert margins_of(None, 2) == [(0, 0), (0, 0)]
