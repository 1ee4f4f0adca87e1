from __future__ import annotations

import pytest

from .probe import rule


def test_reduce_of_several_tensors() -> None:
    found = rule("reduce", "6x5x10, 6x5x10, (), () -> 5, 5", dimensions=(2, 0))
    assert found == "([i, j, k], [i, j, k], [], [])->([j], [j]) {i=6, j=5, k=10} reduction={i, k}"


def test_reduce_of_nothing() -> None:
    assert rule("reduce", "6, () -> 6", dimensions=()) == "([i], [])->([i]) {i=6}"


@pytest.mark.parametrize(
    ("shapes", "dimension", "expected"),
    [
        ("6x10 -> 6x10", 1, "([i, j])->([i, j]) {i=6, j=10} need_replication={j}"),
        ("1x10 -> 1x10", 1, "([i, j])->([i, j]) {i=1, j=10} need_replication={j} blocked_propagation={j}"),
        ("10 -> 10", 0, "([i])->([i]) {i=10} need_replication={i} blocked_propagation={i}"),
        ("6x10 -> 6x10", -1, "([i, j])->([i, j]) {i=6, j=10} need_replication={j}"),
        ("6x10 -> 6x10", -2, "([i, j])->([i, j]) {i=6, j=10} need_replication={i}"),
        ("6, 6 -> 6, 6", 0, "([i], [i])->([i], [i]) {i=6} need_replication={i} blocked_propagation={i}"),
    ],
)
def test_sort(shapes: str, dimension: int, expected: str) -> None:
    assert rule("sort", shapes, dimension=dimension) == expected


def test_sort_without_a_dimension_is_as_with_a_negative_one() -> None:
    assert rule("sort", "6x10 -> 6x10") == rule("sort", "6x10 -> 6x10", dimension=-1)


@pytest.mark.parametrize("target", ["@mhlo.topk", "@TopK"])
def test_top_k(target: str) -> None:
    expected = "([i, j])->([i, j], [i, j]) {i=6, j=10} need_replication={j} blocked_propagation={j}"
    assert rule(target, "6x10 -> 6x3, 6x3") == rule(target, "6x10 -> 6x3, 6x3", conservative=True) == expected
    assert rule(target, "6x10 -> 6x10, 6x10") == "([i, j])->([i, j], [i, j]) {i=6, j=10}"


@pytest.mark.parametrize("target", ["@ApproxTopK", "@PartialReduce"])
def test_partial_reduce(target: str) -> None:
    assert rule(target, "6x10, 6x10, (), () -> 6x4, 6x4") == (
        "([i, j], [i, j], [], [])->([i, k], [i, k]) {i=6, j=10, k=4} need_replication={k} blocked_propagation={k}"
    )
