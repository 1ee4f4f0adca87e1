from __future__ import annotations

from .probe import rule


def test_slice() -> None:
    expected = "([i, j])->([i, j]) {i=6, j=10} permutation={j}"
    assert rule("slice", "6x10 -> 6x4") == expected
    assert rule("slice", "6x10 -> 6x4", conservative=True) == f"{expected} blocked_propagation={{j}}"


def test_dynamic_slice_is_blocked_in_both_modes() -> None:
    expected = "([i, j], [], [])->([i, j]) {i=6, j=10} need_replication={j} blocked_propagation={j}"
    shapes = "6x10, (), () -> 6x3"
    assert rule("dynamic_slice", shapes) == rule("dynamic_slice", shapes, conservative=True) == expected


def test_dynamic_update_slice() -> None:
    expected = "([i, j], [i, k], [], [])->([i, j]) {i=6, j=10, k=3} permutation={j, k}"
    shapes = "6x10, 6x3, (), () -> 6x10"
    assert rule("dynamic_update_slice", shapes) == rule("dynamic_update_slice", shapes, conservative=True) == expected


def test_an_update_of_everything_passes_through() -> None:
    assert rule("dynamic_update_slice", "6, 6, () -> 6") == "([i], [i], [])->([i]) {i=6}"
