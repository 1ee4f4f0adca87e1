"""The distances of the elements of two arrays."""

from __future__ import annotations

import numpy as np


def wide(array: np.ndarray) -> np.ndarray:
    """The array in a type in which differences can be taken."""
    return array.astype(complex if np.iscomplexobj(array) else float)


def distances(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """|a - b| of every element; 0 for equal infinities and for two NaNs, infinite for one NaN.

    >>> distances(np.array([1.0, np.nan, np.inf]), np.array([3.0, np.nan, 1.0]))
    array([ 2.,  0., inf])
    """
    a, b = wide(found), wide(expected)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
        if found.dtype.kind in "iu" and expected.dtype.kind in "iu":  # floats may hide differences
            distance = np.where(found == expected, 0.0, np.maximum(distance, 1.0))
        return np.where(np.isnan(distance), np.inf, distance)
