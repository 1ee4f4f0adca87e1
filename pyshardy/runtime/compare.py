"""Compares two sets of outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from pyshardy.runtime.distances import distances, wide
from pyshardy.runtime.noise import LIMIT, Noise

TOLERANCE = 1e-3
"""The largest |a-b|/(1+|b|) if the effect of rounding is unknown and the user gives no tolerance."""
_BLIND = 0.5
"""If only relative errors of this size or more would be noticed, the comparison has no verdict."""
_BLUNT = 0.01
"""A warning appears if relative errors of this size may go unnoticed."""


class Verdict(Enum):
    """The verdict of a comparison on one output."""

    AGREE = "agree"
    DIFFER = "differ"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """The distance between two versions of one output.

    Attributes:
        name: Name of the output.
        max_absolute_error: Largest |a - b|; infinite if shapes or NaNs differ.
        max_relative_error: Largest |a - b| / (1 + |b|).
        noise_ratio: The distance divided by the effect of rounding; None if that is unknown.
        noise: The effect of rounding.
    """

    name: str
    max_absolute_error: float
    max_relative_error: float
    noise_ratio: float | None = None
    noise: Noise | None = field(default=None, compare=False, repr=False)

    def verdict(self, tolerance: float | None = None) -> Verdict:
        """Whether the two versions agree.

        Args:
            tolerance: The largest relative error; by default, the effect of rounding decides.
        """
        if tolerance is not None or self.noise_ratio is None:
            allowed = TOLERANCE if tolerance is None else tolerance
            return Verdict.AGREE if self.max_relative_error <= allowed else Verdict.DIFFER
        if not self.noise_ratio <= LIMIT:
            return Verdict.DIFFER
        return Verdict.CANNOT_TELL if self._is_blind() else Verdict.AGREE

    def _is_blind(self) -> bool:
        if self.noise is None or self.noise.unknown > _BLIND:
            return self.noise is not None
        return self.max_absolute_error > 0 and min(self.noise.resolution, self.noise.factor_resolution) > _BLIND

    @property
    def is_blunt(self) -> bool:
        """Whether an error of some percent in one value may have gone unnoticed."""
        return self.noise is not None and self.max_absolute_error > 0 and self.noise.resolution > _BLUNT


def compare_outputs(
    names: Sequence[str], found: Sequence[Any], expected: Sequence[Any], noises: Sequence[Noise] | None = None
) -> list[OutputDifference]:
    """The distance of every output from its expected value, the largest over all its copies.

    >>> compare_outputs(["x"], [np.array([1.0, 2.0])], [np.array([1.0, 3.0])])
    [OutputDifference(name='x', max_absolute_error=1.0, max_relative_error=0.25, noise_ratio=None)]
    """
    known: Sequence[Noise | None] = [None] * len(names) if noises is None else noises
    rows = zip(names, found, expected, known, strict=True)
    return [_compare_output(name, a, np.asarray(b), noise) for name, a, b, noise in rows]


def _compare_output(name: str, found: Any, expected: np.ndarray, noise: Noise | None) -> OutputDifference:
    """The largest distance over all devices, which may have copies of the same shard."""
    shards = getattr(found, "addressable_shards", ())
    if len(shards) < 2 or found.shape != expected.shape:
        parts: list[tuple[np.ndarray, Any]] = [(np.asarray(found), ...)]
    else:
        parts = _distinct([(np.asarray(shard.data), shard.index) for shard in shards])
    pieces = [compare_arrays(name, part, expected[index]) for part, index in parts]
    ratio = None
    if noise is not None:
        is_same_shape = parts[0][0].shape == expected[parts[0][1]].shape
        ratio = max(noise.ratio(part, index) for part, index in parts) if is_same_shape else np.inf
    absolute = max(piece.max_absolute_error for piece in pieces)
    return OutputDifference(name, absolute, max(piece.max_relative_error for piece in pieces), ratio, noise)


def _distinct(parts: list[tuple[np.ndarray, Any]]) -> list[tuple[np.ndarray, Any]]:
    """The parts without those that equal another part of the same index, bit by bit."""
    found: dict[str, list[tuple[np.ndarray, Any]]] = {}
    for part, index in parts:
        known = found.setdefault(repr(index), [])
        if not any(np.array_equal(_bits(part), _bits(other)) for other, _ in known):
            known.append((part, index))
    return [part for known in found.values() for part in known]


def _bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def compare_arrays(name: str, found: np.ndarray, expected: np.ndarray) -> OutputDifference:
    """The distance of an array from its expected value; equal infinities count as equal, and so do NaNs."""
    if found.shape != expected.shape:
        return OutputDifference(name, float("inf"), float("inf"))
    distance = distances(found, expected)
    with np.errstate(invalid="ignore"):
        relative = np.where(distance == 0, 0.0, distance / (1 + np.abs(wide(expected))))
        relative = np.where(np.isnan(relative), np.inf, relative)
    return OutputDifference(name, float(distance.max(initial=0.0)), float(relative.max(initial=0.0)))
