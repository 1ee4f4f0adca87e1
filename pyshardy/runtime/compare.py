"""How far two sets of outputs are apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Difference:
    """The distance between two versions of one output.

    Attributes:
        name: Name of the output.
        max_absolute_error: Largest |a - b|; infinite where shapes or not-a-numbers differ.
        max_relative_error: Largest |a - b| / (1 + |b|).
    """

    name: str
    max_absolute_error: float
    max_relative_error: float


def compare_outputs(names: Sequence[str], found: Sequence[Any], expected: Sequence[Any]) -> list[Difference]:
    """The distance of every output from what is expected, the largest of all its copies; as many of each.

    >>> compare_outputs(["x"], [np.array([1.0, 2.0])], [np.array([1.0, 3.0])])
    [Difference(name='x', max_absolute_error=1.0, max_relative_error=0.25)]
    """
    return [_compare_output(name, a, np.asarray(b)) for name, a, b in zip(names, found, expected, strict=True)]


def _compare_output(name: str, found: Any, expected: np.ndarray) -> Difference:
    """The largest distance of what any device has; devices may have copies of the same part."""
    shards = getattr(found, "addressable_shards", ())
    if len(shards) < 2 or found.shape != expected.shape:
        return compare_arrays(name, np.asarray(found), expected)
    pieces = [compare_arrays(name, np.asarray(shard.data), expected[shard.index]) for shard in shards]
    absolute = max(piece.max_absolute_error for piece in pieces)
    return Difference(name, absolute, max(piece.max_relative_error for piece in pieces))


def compare_arrays(name: str, found: np.ndarray, expected: np.ndarray) -> Difference:
    """The distance of one array from what is expected; equal infinities and not-a-numbers count as equal."""
    if found.shape != expected.shape:
        return Difference(name, float("inf"), float("inf"))
    kind = complex if np.iscomplexobj(expected) else float
    a, b = found.astype(kind), expected.astype(kind)
    with np.errstate(invalid="ignore"):
        distance = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
        if found.dtype.kind in "iu" and expected.dtype.kind in "iu":  # large ones may differ where the floats do not
            distance = np.where(found == expected, 0.0, np.maximum(distance, 1.0))
        distance = np.where(np.isnan(distance), np.inf, distance)
        relative = np.where(distance == 0, 0.0, distance / (1 + np.abs(b)))
        relative = np.where(np.isnan(relative), np.inf, relative)
    return Difference(name, float(distance.max(initial=0.0)), float(relative.max(initial=0.0)))
