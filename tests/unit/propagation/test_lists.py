from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyshardy.propagation.lists import Lists, zeros

SOME = st.lists(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5), max_size=8)


@given(SOME)
def test_they_are_sequences_of_tuples(lists: list[list[int]]) -> None:
    found = Lists.of(lists)
    expected = [tuple(one) for one in lists]
    assert list(found) == expected and len(found) == len(expected)
    assert [found[index - len(expected)] for index in range(len(expected))] == expected
    assert found[1:] == expected[1:]
    with pytest.raises(IndexError):
        found[len(expected)]


@given(SOME, SOME)
def test_a_copy_may_grow(lists: list[list[int]], more: list[list[int]]) -> None:
    found = Lists.of(lists)
    copy = found.copy()
    copy.extend(more)
    assert list(copy) == [tuple(one) for one in lists + more]
    assert list(found) == [tuple(one) for one in lists]


@given(SOME, st.integers(0, 5))
def test_empty_lists_are_added(lists: list[list[int]], count: int) -> None:
    found, expected = Lists.of(lists), Lists.of([*lists, *[()] * count])
    found.extend_empty(count)
    assert list(found) == list(expected)
    found.extend([(7,)])
    assert found[-1] == (7,)


def test_arrays_are_filled_and_what_is_too_much_is_cut() -> None:
    found = Lists.empty(2, 5)
    assert list(found) == [(), ()]
    found.numbers[:3] = Lists.of([(7, 8, 9)]).numbers
    found.starts[1], found.starts[2] = 1, 3
    found.cut()
    found.extend([(4,)])
    assert list(found) == [(7,), (8, 9), (4,)]


def test_zeros() -> None:
    assert list(zeros(3)) == [0, 0, 0] and zeros(3).itemsize == 4
