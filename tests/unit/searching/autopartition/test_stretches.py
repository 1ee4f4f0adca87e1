from __future__ import annotations

from pyshardy.searching.autopartition.stretches import Stretch, find_stretches


def test_stretches_are_found_in_order() -> None:
    forward, backward = [1, 2, 3] * 6, [4, 5] * 8
    assert find_stretches([0, *forward, 9, *backward, 7]) == [Stretch(1, 3, 6), Stretch(20, 2, 8)]


def test_few_rounds_are_no_stretch() -> None:
    assert find_stretches([1, 2, 3, 1, 2, 3, 1, 2, 3]) == []


def test_longest_saving_is_found_first() -> None:
    found = find_stretches([1, 1, 2] * 10)
    assert found == [Stretch(0, 3, 10)]
