"""What shards get of each other holds every element of their stretches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pyshardy.errors import InvalidShardingError
from pyshardy.reshard.window_halo import Fetch, Stretches, fetch_of, fetch_of_whole

_OUTSIDE = -1
_UNKNOWN = -2
"""What a shard has where nobody has sent it anything."""


def _wanted(stretches: Stretches) -> list[list[int]]:
    """The positions of every stretch, by definition: the number of the element, or that it is none."""
    found = []
    for index in range(stretches.used):
        begin = stretches.first + index * stretches.step
        places = [divmod(position, stretches.dilation) for position in range(begin, begin + stretches.extent)]
        found.append([place if rest == 0 and 0 <= place < stretches.size else _OUTSIDE for place, rest in places])
    return found


def _by_shards(stretches: Stretches, fetch: Fetch, is_whole: bool = False) -> list[list[int]]:
    """The same from what every shard has and gets."""
    data = np.arange(stretches.size)
    shard = stretches.size if is_whole else stretches.shard
    padded = np.full(shard * stretches.shards, _OUTSIDE)
    padded[: stretches.size] = data
    found = []
    for index in range(stretches.used):
        own = 0 if is_whole else index
        joined = np.full(fetch.end - fetch.begin, _UNKNOWN)
        for hop, first, end in ((0, 0, shard), *fetch.parts):
            source = padded[(own + hop) * shard + first :][: end - first] if 0 <= own + hop < stretches.shards else []
            part = np.full(end - first, _OUTSIDE)
            part[: len(source)] = source
            joined[hop * shard + first - fetch.begin :][: end - first] = part
        start, phase = (numbers[index if len(numbers) > 1 else 0] for numbers in (fetch.starts, fetch.phases))
        stretch = np.full(stretches.extent, _OUTSIDE)
        for number in range(fetch.length):
            position = phase + number * stretches.dilation
            if position < stretches.extent and 0 <= start + number < len(joined):
                stretch[position] = joined[start + number]
        found.append(stretch.tolist())
    return found


@st.composite
def _stretches(draw: st.DrawFn) -> Stretches:
    size, shards = draw(st.integers(1, 24)), draw(st.integers(2, 6))
    return Stretches(
        size,
        shards,
        draw(st.integers(-9, 9)),
        draw(st.integers(-6, 12)),
        draw(st.integers(1, 12)),
        draw(st.integers(1, shards)),
        draw(st.integers(1, 3)),
    )


@given(_stretches())
def test_every_shard_has_its_stretch(stretches: Stretches) -> None:
    fetch = fetch_of(stretches)
    assume(fetch is not None)
    assert fetch is not None
    assert _by_shards(stretches, fetch) == _wanted(stretches)
    assert fetch.moved < stretches.shard * (stretches.shards - 1)


@given(_stretches())
def test_a_stretch_of_what_every_device_has(stretches: Stretches) -> None:
    assert _by_shards(stretches, fetch_of_whole(stretches), is_whole=True) == _wanted(stretches)


def test_a_missing_element_would_be_seen() -> None:
    stretches = Stretches(16, 4, first=-1, step=4, extent=6, used=4)
    fetch = fetch_of(stretches)
    assert fetch is not None and _by_shards(stretches, fetch) == _wanted(stretches)
    left, right = fetch.parts
    for wrong in (
        fetch._replace(parts=(left,)),
        fetch._replace(parts=(left._replace(first=2, end=3), right)),
        fetch._replace(starts=(1,)),
        fetch._replace(phases=(1,)),
    ):
        assert _by_shards(stretches, wrong) != _wanted(stretches)


@pytest.mark.parametrize(
    ("stretches", "moved"),
    [
        (Stretches(16, 4, first=0, step=4, extent=4, used=4), 0),  # a window of one element
        (Stretches(16, 4, first=-1, step=4, extent=6, used=4), 2),  # of three
        (Stretches(16, 4, first=0, step=4, extent=5, used=4), 1),  # of three, every second one, padded behind
        (Stretches(16, 4, first=0, step=4, extent=3, used=4), 0),  # of one, every second one
        (Stretches(16, 8, first=-2, step=2, extent=6, used=8), 4),  # of five, two on each side
        (Stretches(16, 8, first=-3, step=2, extent=8, used=8), 6),  # of seven, of neighbours and those behind them
        (Stretches(8, 4, first=-1, step=4, extent=6, used=4, dilation=2), 1),  # of three, in a transposed convolution
    ],
)
def test_no_more_moves_than_is_needed(stretches: Stretches, moved: int) -> None:
    fetch = fetch_of(stretches)
    assert fetch is not None
    assert fetch.moved == moved


@pytest.mark.parametrize("first", [-15, -12])
def test_what_moves_as_much_as_a_gather_is_gathered(first: int) -> None:
    assert fetch_of(Stretches(16, 4, first=first, step=4, extent=4 - first, used=4)) is None


def _numbers(fetch: Fetch) -> tuple[Sequence[int], int | None, Sequence[int], int | None]:
    return fetch.starts, fetch.start, fetch.phases, fetch.phase


def test_numbers_that_are_the_same_for_all_shards_are_one() -> None:
    even = fetch_of(Stretches(8, 4, first=-1, step=4, extent=5, used=4, dilation=2))
    assert even is not None and _numbers(even) == ((0,), 0, (1,), 1)
    uneven = fetch_of(Stretches(8, 4, first=-1, step=3, extent=5, used=4, dilation=2))
    assert uneven is not None and _numbers(uneven) == ((2, 1, 1, 0), None, (1, 0, 1, 0), None)


def test_too_many_shards_are_refused() -> None:
    with pytest.raises(InvalidShardingError, match="finding what shards need"):
        fetch_of(Stretches(2**22, 2**21, first=-1, step=2, extent=4, used=2**21))
