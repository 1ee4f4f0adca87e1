from __future__ import annotations

import pytest

from pyshardy.rules.dimension_numbers import DotNumbers

from .probe import rule


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ("10, 10 -> ()", "([i], [i])->([]) {i=10} reduction={i}"),
        ("6x10, 10 -> 6", "([i, j], [j])->([i]) {i=6, j=10} reduction={j}"),
        ("10, 10x6 -> 6", "([j], [j, i])->([i]) {i=6, j=10} reduction={j}"),
        ("6x10, 10x5 -> 6x5", "([i, k], [k, j])->([i, j]) {i=6, j=5, k=10} reduction={k}"),
    ],
)
def test_dot(shapes: str, expected: str) -> None:
    assert rule("dot", shapes) == expected


def test_dot_general_with_batching_in_any_order() -> None:
    numbers = DotNumbers((2, 0), (1, 3), (3,), (0,))
    found = rule("dot_general", "7x6x5x10, 10x5x3x7 -> 5x7x6x3", dot_dimension_numbers=numbers)
    assert found == "([j, k, i, m], [m, i, l, j])->([i, j, k, l]) {i=5, j=7, k=6, l=3, m=10} reduction={m}"


def test_outer_product() -> None:
    found = rule("dot_general", "6, 5 -> 6x5", dot_dimension_numbers=DotNumbers())
    assert found == "([i], [j])->([i, j]) {i=6, j=5}"
