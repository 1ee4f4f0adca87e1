from __future__ import annotations

import pytest

from .probe import rule


@pytest.mark.parametrize(
    ("name", "shapes", "expected"),
    [
        ("tanh", "6x1x10 -> 6x1x10", "([i, j, k])->([i, j, k]) {i=6, j=1, k=10}"),
        ("add", "(), () -> ()", "([], [])->([])"),
        ("abs", "3x1x0 -> 3x1x0", "([i, j, k])->([i, j, k]) {i=3, j=1, k=0}"),
        ("sdy.sharding_constraint", "6x10 -> 6x10", "([i, j])->([i, j]) {i=6, j=10}"),
        ("select", "(), 6x10, 6x10 -> 6x10", "([], [i, j], [i, j])->([i, j]) {i=6, j=10}"),
        ("select", "6x10, 6x10, 6x10 -> 6x10", "([i, j], [i, j], [i, j])->([i, j]) {i=6, j=10}"),
        ("clamp", "(), 6x10, 6x10 -> 6x10", "([], [i, j], [i, j])->([i, j]) {i=6, j=10}"),
        ("clamp", "(), 6x10, () -> 6x10", "([], [i, j], [])->([i, j]) {i=6, j=10}"),
    ],
)
def test_one_factor_per_dimension(name: str, shapes: str, expected: str) -> None:
    assert rule(name, shapes) == rule(name, shapes, conservative=True) == expected


def test_statistics_have_the_feature_dimension() -> None:
    found = rule("batch_norm_inference", "6x5x10, 5, 5, 5, 5 -> 6x5x10", feature_index=1)
    assert found == "([i, j, k], [j], [j], [j], [j])->([i, j, k]) {i=6, j=5, k=10}"


def test_a_smaller_value_has_the_leading_factors() -> None:
    assert rule("@MoveToHost", "6x10, 6 -> 6x10, ()") == "([i, j], [i])->([i, j], []) {i=6, j=10}"


def test_a_value_of_larger_rank_makes_no_rule() -> None:
    assert rule("@MoveToHost", "6x10 -> 6") is None


def test_a_token_as_first_result_makes_no_rule() -> None:
    assert rule("@MoveToHost", "6x10 -> token") is None


def test_other_tokens_have_no_dimensions() -> None:
    assert rule("@MoveToHost", "6x10, token -> 6x10") == "([i, j], [])->([i, j]) {i=6, j=10}"
