"""Stretches of a list that repeat: in a list of ops these are layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

LEAST_ROUNDS: Final = 4
_LEAST_SHARE: Final = 0.02
_MOST_STRETCHES: Final = 12
_MOST_PERIOD: Final = 5000
_WINDOW: Final = 16
_MOST_PERIODS: Final = 24


class Stretch(NamedTuple):
    """Items that repeat.

    Attributes:
        start: The first item.
        period: How many items a round has.
        rounds: How many rounds there are.
    """

    start: int
    period: int
    rounds: int

    @property
    def end(self) -> int:
        """The item behind the last."""
        return self.start + self.period * self.rounds


def find_stretches(signatures: Sequence[int]) -> list[Stretch]:
    """The stretches of a list that repeat, those that save most first chosen, in order of their start.

    Args:
        signatures: Numbers from 0 on, which are equal where items are alike.

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
    """The distances at which items come again most often, and those at which a few items in a row do."""
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
