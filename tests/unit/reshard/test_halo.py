"""What shards get from their neighbours holds every element of their windows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pyshardy.reshard.halo import Halo, Window, halo_of, is_free_pad, is_free_slice

_PADDING = -1


def _whole(window: Window, data: np.ndarray) -> np.ndarray:
    """The output without shards, by definition."""
    found = np.full(window.out_size, _PADDING)
    for position in range(window.out_size):
        source, rest = divmod(position * window.stride - window.low, window.dilation)
        if rest == 0 and 0 <= source < window.size:
            found[position] = data[source]
    return found


def _by_shards(window: Window, halo: Halo, data: np.ndarray) -> np.ndarray:
    """The output shard by shard, each from what its neighbours hold."""
    padded = np.full(window.shard * window.shards, _PADDING)
    padded[: window.size] = data
    shards = padded.reshape(window.shards, -1)
    nothing = np.full(window.shard, _PADDING)
    outputs = []
    for shard in range(window.shards):
        near = range(shard - halo.left, shard + halo.right + 1)
        pieces = [shards[index] if 0 <= index < window.shards else nothing for index in near]
        joined = np.concatenate(pieces)
        margin = halo.footprint * window.dilation
        spread = np.full(2 * margin + max(0, (len(joined) - 1) * window.dilation + 1), _PADDING)
        if len(joined):
            spread[margin : len(spread) - margin : window.dilation] = joined
        start = min(max(0, halo.slope * shard + halo.offset), len(spread) - halo.footprint)
        outputs.append(spread[start : start + halo.footprint][:: window.stride])
    return np.concatenate(outputs)[: window.out_size]


_SHARDS = st.integers(2, 6)


@given(st.integers(1, 30), _SHARDS, st.integers(-4, 8), st.integers(-4, 8), st.integers(1, 3))
def test_pads_by_shards(size: int, shards: int, low: int, high: int, dilation: int) -> None:
    out_size = low + (size - 1) * dilation + 1 + high
    assume(out_size > 0)
    window = Window(size, out_size, shards, low, dilation)
    halo = halo_of(window)
    assume(halo is not None)
    assert halo is not None
    data = np.arange(size)
    assert (_by_shards(window, halo, data) == _whole(window, data)).all()


@given(st.integers(1, 30), _SHARDS, st.integers(0, 10), st.integers(0, 6), st.integers(1, 4))
def test_slices_by_shards(size: int, shards: int, start: int, cut: int, stride: int) -> None:
    out_size = -(-(size - cut - start) // stride)
    assume(out_size > 0)
    window = Window(size, out_size, shards, -start, 1, stride)
    halo = halo_of(window)
    assume(halo is not None)
    assert halo is not None
    data = np.arange(size)
    assert (_by_shards(window, halo, data) == _whole(window, data)).all()


@given(st.integers(1, 30), _SHARDS, st.integers(-4, 6), st.integers(-4, 6))
def test_free_pads_need_no_neighbours(size: int, shards: int, low: int, high: int) -> None:
    out_size = size + low + high
    assume(out_size > 0 and is_free_pad(size, out_size, low, 0, shards))
    halo = halo_of(Window(size, out_size, shards, low))
    assert halo is not None
    assert (halo.left, halo.right) == (0, 0)


@given(st.integers(1, 30), _SHARDS, st.integers(0, 5))
def test_free_slices_take_the_front_of_every_shard(size: int, shards: int, cut: int) -> None:
    window = Window(size, max(0, size - cut), shards, 0)
    is_free = is_free_slice(size, window.out_size, 0, 1, shards)
    assert is_free is (window.shard == window.out_shard)


def test_what_is_too_far_away() -> None:
    assert halo_of(Window(16, 4, 4, low=-12)) is None
    assert halo_of(Window(16, 4, 2, low=-12)) is not None


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (Window(16, 8, 2, 0, 1, 2), True),
        (Window(16, 6, 2, 0, 1, 3), False),
        (Window(16, 7, 2, -2, 1, 2), False),
        (Window(15, 8, 2, 0, 1, 2), False),
        (Window(16, 16, 2, 0), False),
    ],
)
def test_every_nth_element_of_whole_shards(window: Window, expected: bool) -> None:
    assert window.is_whole_slice is expected
