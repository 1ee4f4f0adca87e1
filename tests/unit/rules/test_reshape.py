from __future__ import annotations

import pytest

from .probe import rule


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ("6x4 -> 24", "([i, j])->([ij]) {i=6, j=4}"),
        ("24 -> 6x4", "([ij])->([i, j]) {i=6, j=4}"),
        ("2x9x5 -> 6x15", "([i, jk, l])->([ij, kl]) {i=2, j=3, k=3, l=5}"),
        ("12x10 -> 8x15", "([ij, lm])->([ij, km]) {i=4, j=3, k=3, l=2, m=5} need_replication={k, l} permutation={j}"),
        ("4x9 -> 6x6", "([ij, km])->([ij, lm]) {i=2, j=2, k=3, l=2, m=3} need_replication={k, l} permutation={j}"),
        ("5x7 -> 7x5", "([i, j])->([i, k]) {i=5, j=7, k=5} need_replication={j, k} permutation={i}"),
        (
            "2x3x5x7 -> 21x10",
            "([i, j, k, m])->([i, l]) {i=2, j=3, k=5, l=10, m=7} need_replication={j, k, l, m} permutation={i}",
        ),
        ("1x7 -> 7x1x1", "([i, j])->([j, k, l]) {i=1, j=7, k=1, l=1} need_replication={i, k, l}"),
        ("() -> 1x1", "([])->([i, j]) {i=1, j=1} need_replication={i, j}"),
        ("1x1 -> ()", "([i, j])->([]) {i=1, j=1} need_replication={i, j}"),
        ("() -> ()", "([])->([])"),
        ("4x9x7 -> 4x9x7", "([i, j, k])->([i, j, k]) {i=4, j=9, k=7}"),
    ],
)
def test_factors_of_a_reshape(shapes: str, expected: str) -> None:
    assert rule("reshape", shapes) == rule("reshape", shapes, conservative=True) == expected


def test_no_rule_without_elements() -> None:
    assert rule("reshape", "0x3 -> 3x0") is None
