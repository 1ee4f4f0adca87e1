"""What shards need where windows move along a sharded dimension, by the numbers of the op."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import pyshardy
from pyshardy.ir.nodes import Op, walk
from pyshardy.transforms.exchanges.manual import Fill
from pyshardy.transforms.exchanges.scattered import fills_of, touching
from pyshardy.transforms.exchanges.window_numbers import WindowDim, of_outputs, of_taps

_NUMBERS = st.integers(1, 3)


@st.composite
def _windows(draw: st.DrawFn) -> WindowDim:
    low, high = draw(st.integers(-2, 4)), draw(st.integers(-2, 4))
    return WindowDim(low, high, draw(_NUMBERS), draw(_NUMBERS), draw(_NUMBERS), draw(st.booleans()))


def _read(window: WindowDim, taps: int, output: int, tap: int) -> int:
    """The position that an output reads for an element of the kernel, by definition."""
    place = taps - 1 - tap if window.is_reversed else tap
    return output * window.stride + place * window.spread - window.low


@given(_windows(), st.integers(1, 6), st.integers(1, 20), st.integers(2, 5))
def test_outputs_read_within_the_stretch_of_their_shard(window: WindowDim, taps: int, count: int, shards: int) -> None:
    found = of_outputs(window, 16, taps, count, shards)
    shard = -(-count // shards)
    for output in range(count):
        begin = found.begin(output // shard)
        places = [_read(window, taps, output, tap) - begin for tap in range(taps)]
        assert min(places) == output % shard * window.stride
        assert max(places) < found.extent
    assert found.used == (count - 1) // shard + 1


@given(_windows(), st.integers(2, 20), st.integers(1, 4), st.integers(2, 5))
def test_parts_of_a_kernel_read_within_the_stretch_of_their_shard(
    window: WindowDim, taps: int, count: int, shards: int
) -> None:
    found = of_taps(window, 16, taps, count, shards)
    shard = -(-taps // shards)
    for tap in range(taps):
        own, place = divmod(tap, shard)
        place = shard - 1 - place if window.is_reversed else place
        for output in range(count):
            position = _read(window, taps, output, tap) - found.begin(own)
            assert position == output * window.stride + place * window.spread < found.extent


@given(st.integers(1, 24), st.integers(1, 5), _NUMBERS, st.integers(0, 4), st.integers(0, 4), st.integers(2, 5))
def test_all_windows_that_touch_a_shard(size: int, taps: int, stride: int, low: int, high: int, shards: int) -> None:
    room = size + low + high - taps
    assume(room >= 0)
    count = room // stride + 1
    found = touching(WindowDim(low, high, stride, 1, 1), size, taps, count, shards)
    for index in range(found.windows.used):
        own = range(index * found.shard, min(size, (index + 1) * found.shard))
        touched = [at for at in range(count) if set(range(at * stride - low, at * stride - low + taps)) & set(own)]
        first, end = found.windows.elements(index)
        assert set(touched) <= set(range(first, end))
        phase, start = (numbers[index if len(numbers) > 1 else 0] for numbers in (found.phases, found.starts))
        begin = found.covered.begin(index) + phase
        assert begin == first * stride - low
        assert begin + start == own.start
        assert phase + found.extent <= found.covered.extent


def _scatter(compare: str, combine: str, element: str = "f32") -> Op:
    text = f"""func.func @main(%a: tensor<8xf32>, %b: tensor<4xf32>, %i: tensor<f32>) -> tensor<8xf32> {{
      %0 = "stablehlo.select_and_scatter"(%a, %b, %i) <{{window_dimensions = array<i64: 2>,
        window_strides = array<i64: 2>}}> ({{
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %s = stablehlo.compare {compare} : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %s : tensor<i1>
      }}, {{
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %s = stablehlo.{combine} : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}) : (tensor<8xf32>, tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }}"""
    root = pyshardy.load(text.replace("f32", element)).root
    return next(op for op in walk(root) if op.name == "stablehlo.select_and_scatter")


@pytest.mark.parametrize(
    ("compare", "combine", "fills"),
    [
        ("GE, %p, %q", "add %p, %q", ("0xFF800000", "0.0")),
        ("LT, %q, %p", "multiply %q, %p", ("0xFF800000", "1.0")),
        ("LE, %p, %q", "maximum %p, %q", ("0x7F800000", "0xFF800000")),
        ("EQ, %p, %q", "add %p, %q", None),
        ("GE, %p, %p", "add %p, %q", None),
        ("GE, %p, %q", "subtract %p, %q", None),
    ],
)
def test_what_no_window_selects(compare: str, combine: str, fills: tuple[str, str] | None) -> None:
    found = fills_of(_scatter(compare, combine))
    assert found == (None if fills is None else tuple(map(Fill, fills)))


@pytest.mark.parametrize("element", ["ui16", "i32", "i8"])
def test_integers_may_equal_what_fills_the_outside(element: str) -> None:
    assert fills_of(_scatter("GE, %p, %q", "add %p, %q", element)) is None
