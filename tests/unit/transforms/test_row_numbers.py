"""Values that are the number of each position, as JAX writes indices, and values that only look like it."""

from __future__ import annotations

import pytest

import pyshardy
from pyshardy.ir.op_lists import ops_named
from pyshardy.transforms.row_numbers import is_row_number

_IOTA = "%n = stablehlo.iota dim = 0 : tensor<6xi32>\n"
_ZERO = "%z = stablehlo.constant dense<0> : tensor<6xi32>\n%s = stablehlo.constant dense<6> : tensor<6xi32>\n"
_WRAPPED = (
    _IOTA
    + _ZERO
    + "%c = stablehlo.compare {direction}, %n, %z : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>\n"
    + "%m = stablehlo.add %n, %s : tensor<6xi32>\n"
    + "%r = stablehlo.select %c, {taken} : tensor<6xi1>, tensor<6xi32>\n"
)


def numbered(lines: str, type: str, dim: int) -> bool:
    """Whether `%r` is the number of each position along a dimension."""
    module = pyshardy.load(f"func.func @main() -> {type} {{\n{lines}return %r : {type}\n}}")
    (end,) = ops_named(module.root, ("func.return",))
    return is_row_number(end.operands[0], dim)


@pytest.mark.parametrize(
    ("lines", "type", "dim"),
    [
        ("%r = stablehlo.iota dim = 1 : tensor<4x6xi32>\n", "tensor<4x6xi32>", 1),
        (_IOTA + "%r = stablehlo.reshape %n : (tensor<6xi32>) -> tensor<1x6x1xi32>\n", "tensor<1x6x1xi32>", 1),
        (
            _IOTA + "%r = stablehlo.broadcast_in_dim %n, dims = [1] : (tensor<6xi32>) -> tensor<3x6xi32>\n",
            "tensor<3x6xi32>",
            1,
        ),
        (_IOTA + "%r = stablehlo.convert %n : (tensor<6xi32>) -> tensor<6xui8>\n", "tensor<6xui8>", 0),
        (_WRAPPED.format(direction="LT", taken="%m, %n"), "tensor<6xi32>", 0),
        (
            _IOTA
            + "%a = stablehlo.constant dense<0> : tensor<i32>\n%b = stablehlo.constant dense<5> : tensor<i32>\n"
            + "%r = stablehlo.clamp %a, %n, %b : (tensor<i32>, tensor<6xi32>, tensor<i32>) -> tensor<6xi32>\n",
            "tensor<6xi32>",
            0,
        ),
    ],
)
def test_positions_are_found(lines: str, type: str, dim: int) -> None:
    assert numbered(lines, type, dim)


@pytest.mark.parametrize(
    ("lines", "type", "dim"),
    [
        ("%r = stablehlo.iota dim = 0 : tensor<4x6xi32>\n", "tensor<4x6xi32>", 1),
        (_IOTA + "%r = stablehlo.reshape %n : (tensor<6xi32>) -> tensor<2x3xi32>\n", "tensor<2x3xi32>", 1),
        (_IOTA + "%r = stablehlo.reverse %n, dims = [0] : tensor<6xi32>\n", "tensor<6xi32>", 0),
        ("%r = stablehlo.iota dim = 0 : tensor<300xui8>\n", "tensor<300xui8>", 0),  # it wraps around
        ("%r = stablehlo.iota dim = 0 : tensor<6xf32>\n", "tensor<6xf32>", 0),
        (_WRAPPED.format(direction="GT", taken="%m, %n"), "tensor<6xi32>", 0),
        (_WRAPPED.format(direction="LT", taken="%n, %m"), "tensor<6xi32>", 0),
        (
            _IOTA
            + "%a = stablehlo.constant dense<0> : tensor<i32>\n%b = stablehlo.constant dense<4> : tensor<i32>\n"
            + "%r = stablehlo.clamp %a, %n, %b : (tensor<i32>, tensor<6xi32>, tensor<i32>) -> tensor<6xi32>\n",
            "tensor<6xi32>",
            0,
        ),
    ],
)
def test_other_values_are_not(lines: str, type: str, dim: int) -> None:
    assert not numbered(lines, type, dim)
