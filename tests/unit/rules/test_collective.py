from __future__ import annotations

from .probe import rule


def test_all_reduce() -> None:
    assert rule("all_reduce", "6x10, 12 -> 6x10, 12") == "([i, j], [i])->([i, j], [i]) {i=6, j=10}"


def test_all_reduce_of_growing_ranks_keeps_the_tensors_apart() -> None:
    assert rule("all_reduce", "5, 4x8 -> 5, 4x8") == "([i], [j, k])->([i], [j, k]) {i=5, j=4, k=8}"


def test_all_gather() -> None:
    expected = "([i, k, j])->([i, l, j]) {i=6, j=10, k=5, l=15} need_replication={k, l}"
    assert rule("all_gather", "6x5x10 -> 6x15x10", all_gather_dim=1) == expected


def test_reduce_scatter() -> None:
    expected = "([i, k, j])->([i, l, j]) {i=6, j=10, k=15, l=5} need_replication={k, l}"
    assert rule("reduce_scatter", "6x15x10 -> 6x5x10", scatter_dimension=1) == expected


def test_all_to_all() -> None:
    assert rule("all_to_all", "9x6x10 -> 3x6x30", split_dimension=0, concat_dimension=2) == (
        "([j, i, l])->([k, i, m]) {i=6, j=9, k=3, l=10, m=30} need_replication={j, k, l, m}"
    )
    assert rule("all_to_all", "9x6x10 -> 9x6x10", split_dimension=2, concat_dimension=2) == (
        "([i, j, k])->([i, j, l]) {i=9, j=6, k=10, l=10} need_replication={k, l}"
    )


def test_tensors_of_different_ranks_make_no_rule() -> None:
    assert rule("all_gather", "5, 4x8 -> 10, 8x8", all_gather_dim=0) is None
    assert rule("all_to_all", "4x8, 4 -> 4x8, 4", split_dimension=0, concat_dimension=0) is None
