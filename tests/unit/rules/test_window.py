from __future__ import annotations

from typing import Any

import pytest

from .probe import rule

WINDOW = {"window_dimensions": (1, 3, 1), "window_strides": (1, 1, 2), "padding": ((0, 0), (1, 1), (0, 0))}


def test_reduce_window() -> None:
    expected = "([i, j, k], [])->([i, j, k]) {i=6, j=10, k=2} permutation={j, k}"
    shapes = "6x10x4, () -> 6x10x2"
    assert rule("reduce_window", shapes, **WINDOW) == expected
    assert rule("reduce_window", shapes, conservative=True, **WINDOW) == f"{expected} blocked_propagation={{j, k}}"


def test_select_and_scatter() -> None:
    expected = "([i, k], [i, j], [])->([i, k]) {i=6, j=5, k=10} need_replication={j} permutation={k}"
    window = {"window_dimensions": (1, 2), "window_strides": (1, 2)}
    shapes = "6x10, 6x5, () -> 6x10"
    assert rule("select_and_scatter", shapes, **window) == expected
    assert rule("select_and_scatter", shapes, conservative=True, **window) == f"{expected} blocked_propagation={{j, k}}"


@pytest.mark.parametrize(
    ("window", "is_trivial"),
    [
        ({"window_dimensions": (1,)}, True),
        ({"window_dimensions": (1,), "window_strides": (1,), "padding": ((0, 0),)}, True),
        ({}, True),
        ({"window_dimensions": (2,)}, False),
        ({"window_dimensions": (1,), "window_strides": (2,)}, False),
        ({"window_dimensions": (1,), "padding": ((0, 1),)}, False),
        ({"window_dimensions": (1,), "padding": ((1, -1),)}, False),
    ],
)
def test_trivial_windows_pass_through(window: dict[str, Any], is_trivial: bool) -> None:
    found = rule("reduce_window", "6, () -> 6", **window)
    assert found == "([i], [])->([i]) {i=6}" + ("" if is_trivial else " permutation={i}")
