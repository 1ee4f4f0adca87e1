from __future__ import annotations

import pytest

from .probe import rule


def test_cholesky() -> None:
    assert rule("cholesky", "6x5x5 -> 6x5x5") == "([i, j, k])->([i, j, k]) {i=6, j=5, k=5} need_replication={j, k}"


@pytest.mark.parametrize(
    ("shapes", "length", "expected"),
    [
        (
            "6x10x12 -> 6x10x7",
            (10, 12),
            "([i, j, k])->([i, j, k]) {i=6, j=10, k=12} need_replication={j, k} blocked_propagation={k}",
        ),
        ("6x12 -> 6x12", (12,), "([i, j])->([i, j]) {i=6, j=12} need_replication={j}"),
    ],
    ids=["real", "complex"],
)
def test_fft(shapes: str, length: tuple[int, ...], expected: str) -> None:
    assert rule("fft", shapes, fft_length=length) == expected


@pytest.mark.parametrize(
    ("shapes", "left", "transpose", "expected"),
    [
        ("6x5x5, 6x5x9 -> 6x5x9", True, "NO_TRANSPOSE", "([i, j, l], [i, j, k])->([i, l, k]) {i=6, j=5, k=9, l=5}"),
        ("6x5x5, 6x5x9 -> 6x5x9", True, "TRANSPOSE", "([i, l, j], [i, j, k])->([i, l, k]) {i=6, j=5, k=9, l=5}"),
        ("6x5x5, 6x5x9 -> 6x5x9", True, "ADJOINT", "([i, l, j], [i, j, k])->([i, l, k]) {i=6, j=5, k=9, l=5}"),
        ("6x5x5, 6x9x5 -> 6x9x5", False, "NO_TRANSPOSE", "([i, l, k], [i, j, k])->([i, j, l]) {i=6, j=9, k=5, l=5}"),
        ("6x5x5, 6x9x5 -> 6x9x5", False, "TRANSPOSE", "([i, k, l], [i, j, k])->([i, j, l]) {i=6, j=9, k=5, l=5}"),
    ],
)
def test_triangular_solve(shapes: str, left: bool, transpose: str, expected: str) -> None:
    found = rule("triangular_solve", shapes, left_side=left, transpose_a=transpose)
    assert found == f"{expected} need_replication={{j, k, l}}"


@pytest.mark.parametrize(
    ("target", "shapes", "expected"),
    [
        ("@Eigh", "6x5x5 -> 6x5x5, 6x5", "([i, j, k])->([i, j, k], [i, k]) {i=6, j=5, k=5}"),
        (
            "@Qr",
            "6x7x5 -> 6x7x5, 6x5",
            "([i, j, k])->([i, j, k], [i, l]) {i=6, j=7, k=5, l=5} need_replication={j, k, l}",
        ),
        (
            "@QrDecompositionBlock",
            "7x5 -> 7x5, 5",
            "([i, j])->([i, j], [k]) {i=7, j=5, k=5} need_replication={i, j, k}",
        ),
        (
            "@ProductOfElementaryHouseholderReflectors",
            "6x7x5, 6x5 -> 6x7x5",
            "([i, j, k], [i, l])->([i, j, k]) {i=6, j=7, k=5, l=5} need_replication={j, k, l}",
        ),
    ],
)
def test_decompositions(target: str, shapes: str, expected: str) -> None:
    assert rule(target, shapes) == expected
