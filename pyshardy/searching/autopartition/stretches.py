"""Repeated stretches of a list; in a list of ops these are layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

LEAST_ROUNDS: Final = 4
_LEAST_SHARE: Final = 0.005
_MOST_STRETCHES: Final = 18
_MOST_PERIOD: Final = 5000
_WINDOW: Final = 16
_MOST_PERIODS: Final = 24


class Stretch(NamedTuple):
    """A repeated part of a list.

    Attributes:
        start: The position of its first item.
        period: The number of items in a round.
        rounds: The number of rounds.
    """

    start: int
    period: int
    rounds: int

    @property
    def end(self) -> int:
        """The position after its last item."""
        return self.start + self.period * self.rounds


def find_stretches(signatures: Sequence[int]) -> list[Stretch]:
    """The repeated stretches of a list, in order of their start; where they overlap, the one that saves most.

    Args:
        signatures: One number per item, 0 or more; equal for items that are alike.

    >>> find_stretches([9, 1, 2, 1, 2, 1, 2, 1, 2, 7])
    [Stretch(start=1, period=2, rounds=4)]
    >>> find_stretches([1, 2, 3])
    []
    """
    marks = np.asarray(signatures, dtype=np.int64).copy()
    fresh = -1
    found: list[Stretch] = []
    periods = _periods(marks)
    for _ in range(_MOST_STRETCHES):
        best = _best_stretch(marks, periods)
        if best is None or (best.rounds - 3) * best.period < _LEAST_SHARE * len(marks) - 1:
            break
        found.append(best)
        for place in range(best.start, best.end):
            marks[place] = fresh
            fresh -= 1
    return sorted(found)


def _periods(marks: np.ndarray) -> list[int]:
    """The most frequent distances between equal items, and between equal windows of several items."""
    found: dict[int, None] = {}
    for window in (1, 4, _WINDOW):
        if len(marks) < window + 2:
            break
        rolled = np.zeros(len(marks) - window + 1, dtype=np.uint64)
        for place in range(window):
            rolled = rolled * np.uint64(0x9E3779B97F4A7C15) + marks[place : place + len(rolled)].astype(np.uint64)
        order = np.argsort(rolled, kind="stable")
        same = rolled[order][1:] == rolled[order][:-1]
        gaps = (order[1:] - order[:-1])[same]
        counts = np.bincount(gaps[gaps <= _MOST_PERIOD]) if len(gaps) else np.zeros(0, dtype=np.int64)
        weight = counts * np.arange(len(counts)) if window > 1 else counts
        best = np.argsort(-weight, kind="stable")[:_MOST_PERIODS]
        found.update((int(period), None) for period in best if counts[period] >= LEAST_ROUNDS - 1)
    return sorted(found)


def _best_stretch(marks: np.ndarray, periods: Sequence[int]) -> Stretch | None:
    best, saved = None, 0
    for period in periods:
        same = marks[:-period] == marks[period:]
        edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
        if not len(edges):
            continue
        lengths = edges[1::2] - edges[::2]
        longest = int(lengths.argmax())
        rounds = int(lengths[longest]) // period + 1
        if rounds >= LEAST_ROUNDS and (rounds - 3) * period > saved:
            best, saved = Stretch(int(edges[::2][longest]), period, rounds), (rounds - 3) * period
    return best
