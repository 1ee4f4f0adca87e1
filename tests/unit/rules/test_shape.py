from __future__ import annotations

from typing import Any

import pytest

from .probe import rule

PADDING = {"edge_padding_low": (0, 2, 1), "edge_padding_high": (0, 1, -1), "interior_padding": (0, 0, 0)}


@pytest.mark.parametrize(
    ("name", "shapes", "attributes", "expected"),
    [
        ("transpose", "6x5x10 -> 10x6x5", {"permutation": (2, 0, 1)}, "([j, k, i])->([i, j, k]) {i=10, j=6, k=5}"),
        ("transpose", "() -> ()", {"permutation": ()}, "([])->([])"),
        (
            "broadcast_in_dim",
            "5x1x7 -> 6x5x7x9",
            {"broadcast_dimensions": (1, 3, 2)},
            "([j, l, k])->([i, j, k, m]) {i=6, j=5, k=7, l=1, m=9}",
        ),
        ("broadcast_in_dim", "5x1 -> 5x1", {"broadcast_dimensions": (0, 1)}, "([i, j])->([i, j]) {i=5, j=1}"),
        ("broadcast_in_dim", "() -> 4", {"broadcast_dimensions": ()}, "([])->([i]) {i=4}"),
        (
            "reverse",
            "6x1x10 -> 6x1x10",
            {"dimensions": (2,)},
            "([i, j, k])->([i, j, k]) {i=6, j=1, k=10} permutation={k}",
        ),
        ("reverse", "6x1 -> 6x1", {"dimensions": (1,)}, "([i, j])->([i, j]) {i=6, j=1} permutation={j}"),
        ("bitcast_convert", "6x10 -> 6x10x4", {}, "([i, j])->([i, j, k]) {i=6, j=10, k=4} need_replication={k}"),
        ("bitcast_convert", "6x10x2 -> 6x10", {}, "([i, j, k])->([i, j]) {i=6, j=10, k=2} need_replication={k}"),
        ("bitcast_convert", "6x10 -> 6x10", {}, "([i, j])->([i, j]) {i=6, j=10}"),
        ("bitcast_convert", "() -> 4", {}, "([])->([i]) {i=4} need_replication={i}"),
        ("bitcast_convert", "4 -> ()", {}, "([i])->([]) {i=4} need_replication={i}"),
    ],
)
def test_rearranging(name: str, shapes: str, attributes: dict[str, Any], expected: str) -> None:
    assert rule(name, shapes, **attributes) == rule(name, shapes, conservative=True, **attributes) == expected


@pytest.mark.parametrize(
    ("joins_slices", "kind"), [(False, "need_replication"), (True, "permutation")], ids=["repl", "perm"]
)
def test_concatenate(joins_slices: bool, kind: str) -> None:
    found = rule("concatenate", "6x10, 6x4 -> 6x14", dimension=1, joins_slices=joins_slices)
    assert found == f"([i, j], [i, j])->([i, j]) {{i=6, j=14}} {kind}={{j}}"


def test_conservative_concatenate_has_no_factor_where_it_joins() -> None:
    found = rule("concatenate", "6x10, 6x4 -> 6x14", conservative=True, dimension=1)
    assert found == "([i, j], [i, k])->([i, l]) {i=6, j=1, k=1, l=1}"


def test_pad() -> None:
    expected = "([i, j, k], [])->([i, j, k]) {i=6, j=10, k=4} permutation={j, k}"
    assert rule("pad", "6x10x4, () -> 6x13x4", **PADDING) == expected


def test_conservative_pad_blocks_what_changes_its_size() -> None:
    expected = "([i, j, k], [])->([i, j, k]) {i=6, j=10, k=4} permutation={j, k} blocked_propagation={j}"
    assert rule("pad", "6x10x4, () -> 6x13x4", conservative=True, **PADDING) == expected


def test_interior_padding_counts() -> None:
    found = rule("pad", "6, () -> 11", edge_padding_low=(0,), edge_padding_high=(0,), interior_padding=(1,))
    assert found == "([i], [])->([i]) {i=6} permutation={i}"
