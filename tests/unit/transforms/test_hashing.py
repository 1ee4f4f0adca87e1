"""Small numbers are spread over all bits."""

from __future__ import annotations

from pyshardy.transforms.local.random import mixed


def test_numbers_stay_different() -> None:
    assert len({mixed(number, 32) for number in range(4096)}) == 4096
    assert mixed(7, 64) == mixed(7, 32) * (2**32 + 1)


def test_zero_stays_zero() -> None:
    assert mixed(0, 32) == mixed(0, 64) == 0
