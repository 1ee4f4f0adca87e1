from __future__ import annotations

from .probe import rule


def test_rng_bit_generator() -> None:
    assert rule("rng_bit_generator", "2 -> 2, 6x10") == (
        "([i])->([i], [j, k]) {i=2, j=6, k=10} need_replication={i} blocked_propagation={i}"
    )


def test_x64_combine_of_a_random_state() -> None:
    expected = "([i], [i])->([i]) {i=2} need_replication={i} blocked_propagation={i}"
    assert rule("@X64Combine", "2, 2 -> 2", feeds_rng=True) == expected


def test_x64_combine_of_anything_else() -> None:
    assert rule("@X64Combine", "6x2, 6x2 -> 6x2", feeds_rng=False) == "([i, j], [i, j])->([i, j]) {i=6, j=2}"


def test_x64_combine_of_scalars() -> None:
    assert rule("@X64Combine", "(), () -> ()", feeds_rng=True) == "([], [])->([])"
