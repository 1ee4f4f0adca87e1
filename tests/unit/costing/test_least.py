"""The lower bound of the time of a step: by hand for a product, and what it leaves out."""

from __future__ import annotations

import pytest

from pyshardy.costing.chips import find_hardware
from pyshardy.costing.least import least_seconds

from .build import described

CHIP = find_hardware("h100")
RATE = CHIP.matrix_flops_per_s("f32") * CHIP.matrix_efficiency
BANDWIDTH = CHIP.bytes_per_s(is_product=True)


def bound(rows: int, depth: int, columns: int, devices: int = 8) -> float:
    """The bound of one product."""
    x, w, y = (f"tensor<{a}x{b}xf32>" for a, b in ((rows, depth), (depth, columns), (rows, columns)))
    text = f"""
func.func @main(%x: {x}, %w: {w}) -> {y} {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({x}, {w}) -> {y}
  %1 = stablehlo.tanh %0 : {y}
  return %1 : {y}
}}"""
    return least_seconds(described(text), CHIP, devices)


def test_a_product_takes_its_arithmetic_or_its_traffic_or_a_launch() -> None:
    assert bound(8192, 8192, 8192) == pytest.approx(2 * 8192**3 / RATE / 8)
    traffic = 4 * (8 * 65536 + 65536 * 8192 + 8 * 8192)
    assert bound(8, 65536, 8192) == pytest.approx(traffic / BANDWIDTH / 8)
    assert bound(64, 64, 64) == CHIP.kernel_floor_s


def test_a_product_that_may_become_elementwise_is_left_out() -> None:
    """Of eight rows eight devices may have one each: no product is left."""
    assert bound(4096, 8, 4096) == 0.0 < bound(4096, 9, 4096) and bound(4096, 8, 4096, devices=4) > 0


CONVOLUTION = """
func.func @main(%x: tensor<8192x16x256xf32>, %k: tensor<3x256x512xf32>) -> tensor<8192xSIZEx512xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {pad = [[1, 1]], lhs_dilate = [DILATION]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<8192x16x256xf32>, tensor<3x256x512xf32>) -> tensor<8192xSIZEx512xf32>
  return %0 : tensor<8192xSIZEx512xf32>
}"""


def test_a_convolution_counts_unless_zeros_are_between_its_inputs() -> None:
    plain = CONVOLUTION.replace("SIZE", "16").replace("DILATION", "1")
    dilated = CONVOLUTION.replace("SIZE", "31").replace("DILATION", "2")
    assert least_seconds(described(plain), CHIP, 1) == pytest.approx(2 * 8192 * (16 * 3 - 2) * 256 * 512 / RATE)
    assert least_seconds(described(dilated), CHIP, 1) == 0.0


def test_equal_products_count_once_and_loops_as_often_as_they_run() -> None:
    twice = """
func.func @main(%x: tensor<4096x4096xf32>) -> (tensor<4096x4096xf32>, tensor<4096x4096xf32>) {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
    : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %1 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
    : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %0, %1 : tensor<4096x4096xf32>, tensor<4096x4096xf32>
}"""
    once = bound(4096, 4096, 4096)
    assert least_seconds(described(twice), CHIP, 8) == pytest.approx(once)
    loop = """
func.func @main(%x: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<4096x4096xf32>
    cond {
      %c = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %n = stablehlo.add %i, %one : tensor<i32>
      %p = stablehlo.dot_general %y, %y, contracting_dims = [1] x [0]
        : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
      stablehlo.return %n, %p : tensor<i32>, tensor<4096x4096xf32>
    }
  return %0#1 : tensor<4096x4096xf32>
}"""
    assert least_seconds(described(loop), CHIP, 8) == pytest.approx(5 * once)


def test_an_op_may_stand_for_several() -> None:
    text = """
func.func @main(%x: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
    : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}"""
    once = least_seconds(described(text), CHIP, 8)
    assert least_seconds(described(text), CHIP, 8, lambda op: 7) == pytest.approx(7 * once)
