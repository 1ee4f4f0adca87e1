"""The effect of rounding on an output, from a few runs with perturbed rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from pyshardy.runtime.arrays import mantissa_bits
from pyshardy.runtime.distances import distances, wide

LIMIT = 6.0
"""An output differs if its distance is more than this many times the effect of rounding.

The runs move every result by a whole step. Rounding moves results by a third of that on average, so one more rounding
hardly counts. But the runs are few, and may miss rare effects. In the deep programs of the tests, the ratio of correct
outputs is 0.3 to 1.3 in f32. It is at most 2.1 if few elements of a narrow type change. An error of one percent has a
ratio of 100 or more in f32.
"""
_SAMPLES = 32
"""The noise for a magnitude comes from at least this many elements."""
_WIDE_MANTISSA = 23
_LEAST_STEPS, _LEAST_STEPS_NARROW = 1.0, 1 / LIMIT
"""Rounding is assumed to move an output by at least this many steps of its type."""


class Noise:
    """The effect of rounding on one output.

    A few runs tell little about a single element. So the noise of an element is the largest move of all elements of its
    magnitude or a smaller one. A small sum of large terms has the noise of these terms. In a table whose rows have
    different magnitudes, small rows keep their small noise.

    Args:
        expected: The output on one device.
        trials: The outputs of the runs with perturbed rounding.

    Attributes:
        of_elements: The noise of every element; infinite where rounding decides whether it is finite.
        share: How far rounding moves the output, relative to its norm; for integers, the share of elements that it
            moves.
        resolution: The smallest relative error of a typical element that is noticed.
        factor_resolution: The smallest relative error common to all elements that is noticed.
        unknown: The share of elements without information, because they are not finite, or are not after some rounding.
    """

    def __init__(self, expected: np.ndarray, trials: Sequence[np.ndarray]) -> None:
        self.expected, self._trials = expected, trials
        self._factor_noises: dict[str, float] = {}
        self._is_whole = not jax.numpy.issubdtype(expected.dtype, np.inexact)
        values = wide(expected)
        sizes = np.abs(values)
        moves = np.max([distances(trial, expected) for trial in trials], axis=0)
        known = np.isfinite(sizes) & np.isfinite(moves)
        self.of_elements = np.where(moves == 0, 0.0, np.inf)
        self.share = self.resolution = self.factor_resolution = 0.0
        if known.any():
            size, move = sizes[known], moves[known]
            step = _least_step(expected.dtype)
            self.of_elements[known] = noise = np.maximum(_up_to_size(size, move), step * (size + _root_mean(size)))
            self.share = _ratio(_root_mean(move), _root_mean(size))
            self.resolution = LIMIT * _typical_ratio(noise, size)
            self.factor_resolution = LIMIT * self._factor_noise(...)
        self.unknown = float((np.isnan(values) | np.isinf(self.of_elements)).mean()) if known.any() else 1.0
        if self._is_whole:
            self.share = max((_part_moved(trial, expected) for trial in trials), default=0.0)
            self.resolution = self.factor_resolution = LIMIT * self.share

    def ratio(self, found: np.ndarray, index: Any = ...) -> float:
        """The distance of a part of the output divided by the noise: of its worst element, or of all of it together."""
        whole = self.ratio_of_count(found, index) if self._is_whole else self.ratio_of_factor(found, index)
        return max(self.ratio_of_elements(found, index), whole)

    def ratio_of_elements(self, found: np.ndarray, index: Any = ...) -> float:
        """The distance of the worst element divided by its noise."""
        error = distances(found, self.expected[index])
        return float(_ratios(error, self.of_elements[index]).max(initial=0.0))

    def ratio_of_count(self, found: np.ndarray, index: Any = ...) -> float:
        """The number of elements that differ, divided by the number that rounding moves."""
        allowed = max(self.share, 1 / max(1, found.size)) if self.share else 0.0
        return _ratio(_part_moved(found, self.expected[index]), allowed)

    def ratio_of_factor(self, found: np.ndarray, index: Any = ...) -> float:
        """The distance from 1 of the best factor between found and expected values, divided by its noise.

        It shows an error that all elements share even if it is too small to see in one element. For n elements that
        move at random, the noise of the factor is sqrt(n) times smaller.
        """
        expected = self.expected[index]
        known = np.where(np.isinf(self.of_elements[index]), expected, found)
        return _ratio(abs(_factor(known, expected)[0]), self._factor_noise(index))

    def _factor_noise(self, index: Any) -> float:
        """How far rounding moves the factor, from whole runs and from single elements."""
        key = repr(index)  # a slice has no hash
        if key not in self._factor_noises:
            expected = self.expected[index]
            noise = 2 * _least_step(expected.dtype) / float(np.sqrt(max(1, expected.size)))
            for trial in self._trials:
                noise = max(noise, *map(abs, _factor(trial[index], expected)))
            self._factor_noises[key] = noise
        return self._factor_noises[key]


def _factor(found: np.ndarray, expected: np.ndarray) -> tuple[complex, float]:
    """The deviation from 1 of the factor between found and expected values, by least squares over finite elements.

    The second number is its error if all elements move at random.
    """
    other, whole = wide(found), wide(expected)
    used = np.isfinite(other) & np.isfinite(whole)
    if not used.all():
        whole, other = whole[used], other[used]
    with np.errstate(over="ignore"):
        square = _sum_of_squares(whole)
    if not square or not np.isfinite(square):
        return 0.0, 0.0
    moves = (other - whole) * whole.conj()
    return complex(moves.sum() / square), float(np.sqrt(_sum_of_squares(moves)) / square)


def _sum_of_squares(values: np.ndarray) -> float:
    """The sum of |v|^2, without an array of the squares."""
    flat = values.ravel()
    return float(np.vdot(flat, flat).real)


def _part_moved(found: np.ndarray, expected: np.ndarray) -> float:
    return float((found != expected).mean()) if found.size else 0.0


def _typical_ratio(noise: np.ndarray, sizes: np.ndarray) -> float:
    """The relative noise of the larger half of the nonzero elements."""
    some = sizes > 0
    if not some.any():
        return 0.0
    large = sizes >= np.median(sizes[some])
    return float(np.median(noise[large] / sizes[large]))


def _least_step(dtype: Any) -> float:
    """The smallest relative effect of rounding on a number of this type; zero for integers."""
    if not jax.numpy.issubdtype(dtype, np.inexact):
        return 0.0
    mantissa = mantissa_bits(dtype)
    return float(2.0**-mantissa * (_LEAST_STEPS if mantissa >= _WIDE_MANTISSA else _LEAST_STEPS_NARROW))


def _up_to_size(sizes: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """Per element, the largest move of elements of the same power of two or less; of some more if these are few."""
    powers = np.frexp(sizes)[1]
    powers[sizes == 0] = powers.min() - 1
    place = powers - powers.min()
    counts = np.bincount(place)
    most = np.zeros(len(counts))
    np.maximum.at(most, place, moves)
    most = np.maximum.accumulate(most)
    enough = int(np.searchsorted(np.cumsum(counts), min(_SAMPLES, len(sizes))))
    most[:enough] = most[enough]
    return np.asarray(most[place])


def _ratios(parts: np.ndarray, wholes: np.ndarray) -> np.ndarray:
    """Part divided by whole; 0 if both are zero or both are infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = parts / wholes
    return np.where((parts == 0) | np.isinf(wholes), 0.0, ratios)


def _ratio(part: float, whole: float) -> float:
    return float(_ratios(np.asarray(part), np.asarray(whole)))


def _root_mean(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
