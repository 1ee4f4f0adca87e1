from __future__ import annotations

import pytest

from pyshardy.rules.dimension_numbers import ConvolutionNumbers

from .probe import rule

BATCH_FIRST = ConvolutionNumbers(0, 2, (1,), 1, 2, (0,), 0, 2, (1,))  # [b, 0, f]x[0, i, o]->[b, 0, f]
SPATIAL_LAST = ConvolutionNumbers(0, 1, (2,), 0, 1, (2,), 0, 1, (2,))  # [b, f, 0]x[i, o, 0]->[b, f, 0]
NO_SPATIAL = ConvolutionNumbers(0, 1, (), 0, 1, (), 0, 1, ())


def convolution(
    shapes: str, numbers: ConvolutionNumbers, batch_groups: int = 1, feature_groups: int = 1, conservative: bool = False
) -> str | None:
    return rule(
        "convolution",
        shapes,
        conservative,
        dimension_numbers=numbers,
        batch_group_count=batch_groups,
        feature_group_count=feature_groups,
    )


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (
            "6x32x5, 3x5x10 -> 6x32x10",
            "([i, j, l], [k, l, m])->([i, j, m]) {i=6, j=32, k=3, l=5, m=10} reduction={l} permutation={j, k}",
        ),
        (
            "6x32x5, 2x5x10 -> 6x16x10",
            "([i, jk, l], [k, l, m])->([i, j, m]) {i=6, j=16, k=2, l=5, m=10} reduction={k, l} permutation={j}",
        ),
        (
            "6x32x5, 1x5x10 -> 6x32x10",
            "([i, j, k], [m, k, l])->([i, j, l]) {i=6, j=32, k=5, l=10, m=1} reduction={k} permutation={j}",
        ),
        (
            "6x32x5, 30x5x10 -> 6x3x10",
            "([i, j, l], [j, l, m])->([i, k, m]) {i=6, j=30, k=3, l=5, m=10} reduction={j, l} permutation={k}",
        ),
    ],
    ids=["same", "stride", "pointwise", "large kernel"],
)
def test_windows_and_kernel_share_the_input(shapes: str, expected: str) -> None:
    assert convolution(shapes, BATCH_FIRST) == expected


def test_feature_groups() -> None:
    assert convolution("6x9x12, 2x4x6 -> 6x8x6", BATCH_FIRST, feature_groups=3) == (
        "([i, j, lm], [k, m, ln])->([i, j, ln]) {i=6, j=8, k=2, l=3, m=4, n=2} reduction={m} permutation={j, k}"
    )
    assert convolution("6x9x12, 2x1x12 -> 6x8x12", BATCH_FIRST, feature_groups=12) == (
        "([i, j, l], [k, m, l])->([i, j, l]) {i=6, j=8, k=2, l=12, m=1} reduction={m} permutation={j, k}"
    )


def test_batch_groups() -> None:
    shapes = "6x5x9, 5x4x2 -> 3x4x8"
    assert convolution(shapes, SPATIAL_LAST, batch_groups=2) == (
        "([ij, m, k], [m, in, l])->([j, in, k]) {i=2, j=3, k=8, l=2, m=5, n=2} reduction={m} permutation={k, l}"
    )
    assert convolution(shapes, SPATIAL_LAST, batch_groups=2, conservative=True) == (
        "([ij, k, m], [k, il, n])->([j, il, o]) {i=2, j=3, k=5, l=2, m=1, n=1, o=1} reduction={k}"
    )


def test_no_spatial_dimensions() -> None:
    expected = "([i, j], [j, k])->([i, k]) {i=6, j=5, k=10} reduction={j}"
    assert convolution("6x5, 5x10 -> 6x10", NO_SPATIAL) == expected


def test_conservative_convolution_shards_nothing_spatial() -> None:
    assert convolution("6x32x5, 3x5x10 -> 6x32x10", BATCH_FIRST, conservative=True) == (
        "([i, l, j], [m, j, k])->([i, n, k]) {i=6, j=5, k=10, l=1, m=1, n=1} reduction={j}"
    )
