from __future__ import annotations

import pytest

from pyshardy.rules.dimension_numbers import GatherNumbers

from .probe import rule


@pytest.mark.parametrize(
    ("shapes", "numbers", "expected"),
    [
        (
            "50x16, 6x7 -> 6x7x16",
            GatherNumbers((2,), (0,), index_vector=2),
            "([l, k], [i, j])->([i, j, k]) {i=6, j=7, k=16, l=50} reduction={l}",
        ),
        (
            "5x50x16x9, 7x3 -> 7x5x16x4",
            GatherNumbers((1, 2, 3), (1,), index_vector=1),
            "([j, m, k, l], [i, n])->([i, j, k, l]) {i=7, j=5, k=16, l=9, m=50, n=3} reduction={m} "
            "need_replication={l, n} blocked_propagation={l}",
        ),
        (
            "5x9, 7x1 -> 7x1x9",
            GatherNumbers((1, 2), index_vector=1),
            "([j, l], [i, m])->([i, k, l]) {i=7, j=5, k=1, l=9, m=1} reduction={j} need_replication={k, m}",
        ),
        (
            "6x50x16, 3x6x1 -> 3x6x16",
            GatherNumbers((2,), (1,), (0,), (1,), 2),
            "([j, l, k], [i, j, m])->([i, j, k]) {i=3, j=6, k=16, l=50, m=1} reduction={l} need_replication={m}",
        ),
        (
            "1x16, 7x1 -> 7x16",
            GatherNumbers((1,), (0,), index_vector=1),
            "([k, j], [i, l])->([i, j]) {i=7, j=16, k=1, l=1} need_replication={k, l}",
        ),
    ],
    ids=["rows", "cut window", "window of one", "batching", "one row"],
)
def test_gather(shapes: str, numbers: GatherNumbers, expected: str) -> None:
    found = rule("gather", shapes, dimension_numbers=numbers)
    assert found == rule("gather", shapes, conservative=True, dimension_numbers=numbers) == expected


@pytest.mark.parametrize(
    ("shapes", "numbers", "plain", "expected"),
    [
        (
            "50x16, 7x1, 7x16 -> 50x16",
            GatherNumbers((1,), (0,), index_vector=1),
            True,
            "([k, j], [i, l], [i, j])->([k, j]) {i=7, j=16, k=50, l=1} reduction={i} need_replication={l}",
        ),
        (
            "50x16, 7x1, 7x16 -> 50x16",
            GatherNumbers((1,), (0,), index_vector=1),
            False,
            "([k, j], [i, l], [i, j])->([k, j]) {i=7, j=16, k=50, l=1} need_replication={i, l}",
        ),
        (
            "50x16, 7x2, 7x3x16 -> 50x16",
            GatherNumbers((1, 2), index_vector=1),
            True,
            "([j, l], [i, m], [i, k, l])->([j, l]) {i=7, j=50, k=3, l=16, m=2} reduction={i} "
            "need_replication={j, k, m}",
        ),
        (
            "6x50, 6x7x1, 6x7 -> 6x50",
            GatherNumbers((), (1,), (0,), (0,), 2),
            True,
            "([i, k], [i, j, l], [i, j])->([i, k]) {i=6, j=7, k=50, l=1} reduction={j} need_replication={l}",
        ),
        (
            "8, 8, 5x1, 5, 5 -> 8, 8",
            GatherNumbers((), (0,), index_vector=1),
            True,
            "([j], [j], [i, k], [i], [i])->([j], [j]) {i=5, j=8, k=1} reduction={i} need_replication={k}",
        ),
    ],
    ids=["add", "overwrite", "cut window", "batching", "two inputs"],
)
def test_scatter(shapes: str, numbers: GatherNumbers, plain: bool, expected: str) -> None:
    assert rule("scatter", shapes, scatter_dimension_numbers=numbers, plain_combiner=plain) == expected
