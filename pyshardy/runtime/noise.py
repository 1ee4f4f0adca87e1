"""What rounding does to an output, from a few runs that round otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from pyshardy.runtime.arrays import mantissa_bits
from pyshardy.runtime.distances import distances, wide

LIMIT = 6.0
"""An output differs where it is farther off than so many times what rounding does.

The runs move every result by a whole step, three times as much as rounding does on average, so one step less or more
hardly counts; but they are few, and what they do not show may happen. In the deep programs of the tests the ratio of
correct outputs is 0.3 to 1.3 in f32, and 2.1 at most where few elements of a narrow type flip. An error of a percent
has a ratio of 100 and more in f32.
"""
_SAMPLES = 32
"""The noise of elements of one size is that of so many elements, at least."""
_WIDE_MANTISSA = 23
_LEAST_STEPS, _LEAST_STEPS_NARROW = 1.0, 1 / LIMIT
"""Rounding is taken to move an output by this many steps of its type; one step of a narrow type is much."""


class Noise:
    """What rounding does to one output.

    The noise of an element is the most that rounding moves any element of its size or smaller: the runs are few, so
    that what they do to a single element says little. Sums of terms of one size have the noise of these terms, however
    small the sum is, and in a table whose rows differ by magnitudes small rows keep their small noise.

    Args:
        expected: The output on one device.
        trials: The same rounded otherwise, a few times.

    Attributes:
        of_elements: The noise of every element; infinite where rounding decides whether there is a number.
        share: How far rounding moves the output, as a part of its size; of whole numbers, how many it moves.
        resolution: The least error of a typical element that is noticed, as a part of it.
        factor_resolution: The least error of all elements together that is noticed.
        unknown: The part of the elements that say nothing: no numbers, or none after some rounding.
    """

    def __init__(self, expected: np.ndarray, trials: Sequence[np.ndarray]) -> None:
        self.expected, self._trials = expected, trials
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
        """How far a part of the output is off in terms of the noise: its worst element, or all of it together."""
        whole = self.ratio_of_count(found, index) if self._is_whole else self.ratio_of_factor(found, index)
        return max(self.ratio_of_elements(found, index), whole)

    def ratio_of_elements(self, found: np.ndarray, index: Any = ...) -> float:
        """How far the worst element is off in terms of its noise."""
        error = distances(found, self.expected[index])
        return float(_ratios(error, self.of_elements[index]).max(initial=0.0))

    def ratio_of_count(self, found: np.ndarray, index: Any = ...) -> float:
        """How many elements differ, in terms of how many rounding moves."""
        allowed = max(self.share, 1 / max(1, found.size)) if self.share else 0.0
        return _ratio(_part_moved(found, self.expected[index]), allowed)

    def ratio_of_factor(self, found: np.ndarray, index: Any = ...) -> float:
        """How far the factor that fits best between what is found and expected is from 1, in terms of its noise.

        It shows an error that all elements share though it is too small in each of them. The noise of n elements that
        move at random is sqrt(n) times smaller in the factor.
        """
        expected = self.expected[index]
        known = np.where(np.isinf(self.of_elements[index]), expected, found)
        return _ratio(abs(_factor(known, expected)), self._factor_noise(index))

    def _factor_noise(self, index: Any) -> float:
        """How far rounding moves the factor, as the runs say together and element by element."""
        expected = self.expected[index]
        noise = 2 * _least_step(expected.dtype) / float(np.sqrt(max(1, expected.size)))
        for trial in self._trials:
            noise = max(noise, abs(_factor(trial[index], expected)), _scatter(trial[index], expected))
        return noise


def _factor(found: np.ndarray, expected: np.ndarray) -> complex:
    """By how much found is another multiple of expected than 1, by least squares over what is finite."""
    moves, square = _moves(found, expected)
    return complex(moves.sum() / square) if square else 0.0


def _scatter(found: np.ndarray, expected: np.ndarray) -> float:
    """The error of the factor if all elements move at random."""
    moves, square = _moves(found, expected)
    return float(np.sqrt(np.sum(np.abs(moves) ** 2)) / square) if square else 0.0


def _moves(found: np.ndarray, expected: np.ndarray) -> tuple[np.ndarray, float]:
    other, whole = wide(found), wide(expected)
    used = np.isfinite(other) & np.isfinite(whole)
    whole, other = whole[used], other[used]
    with np.errstate(over="ignore"):
        square = float(np.sum(np.abs(whole) ** 2))
    return (other - whole) * whole.conj(), square if np.isfinite(square) else 0.0


def _part_moved(found: np.ndarray, expected: np.ndarray) -> float:
    return float((found != expected).mean()) if found.size else 0.0


def _typical_ratio(noise: np.ndarray, sizes: np.ndarray) -> float:
    """Noise by size of the larger half of the elements that are not zero."""
    some = sizes > 0
    if not some.any():
        return 0.0
    large = sizes >= np.median(sizes[some])
    return float(np.median(noise[large] / sizes[large]))


def _least_step(dtype: Any) -> float:
    """What rounding does to a number of this type at least, as a part of it; nothing to whole numbers."""
    if not jax.numpy.issubdtype(dtype, np.inexact):
        return 0.0
    mantissa = mantissa_bits(dtype)
    return float(2.0**-mantissa * (_LEAST_STEPS if mantissa >= _WIDE_MANTISSA else _LEAST_STEPS_NARROW))


def _up_to_size(sizes: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """The largest move of any element of the same power of two or less; of a few more where these are few."""
    powers = np.frexp(sizes)[1]
    powers[sizes == 0] = powers.min() - 1
    _, place, counts = np.unique(powers, return_inverse=True, return_counts=True)
    most = np.zeros(len(counts))
    np.maximum.at(most, place, moves)
    most = np.maximum.accumulate(most)
    enough = int(np.searchsorted(np.cumsum(counts), min(_SAMPLES, len(sizes))))
    most[:enough] = most[enough]
    return np.asarray(most[place])


def _ratios(parts: np.ndarray, wholes: np.ndarray) -> np.ndarray:
    """Part by whole; 0 for nothing of nothing, and where both are infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = parts / wholes
    return np.where((parts == 0) | np.isinf(wholes), 0.0, ratios)


def _ratio(part: float, whole: float) -> float:
    return float(_ratios(np.asarray(part), np.asarray(whole)))


def _root_mean(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
