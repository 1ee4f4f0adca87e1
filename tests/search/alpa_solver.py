"""Alpa's integer program as linear constraints, solved by HiGHS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array
from search.alpa_graph import Graph


class _Rows:
    """Linear constraints, row by row."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, float]] = []
        self.low: list[float] = []
        self.high: list[float] = []

    def add(self, entries: Iterator[tuple[int, float]], low: float, high: float) -> None:
        self.entries += [(len(self.low), column, value) for column, value in entries]
        self.low.append(low)
        self.high.append(high)


def solve(graph: Graph, limit: float, seconds: float) -> tuple[list[int], Any]:
    """The strategy of every cluster, and the result of HiGHS.

    Args:
        graph: The choices.
        limit: The bytes that a device may hold.
        seconds: The time limit of HiGHS.

    Raises:
        ValueError: HiGHS finds no solution.
    """
    starts = np.cumsum([0, *(len(cluster.strategies) for cluster in graph.clusters)])
    costs = [float(cost) for cluster in graph.clusters for cost in cluster.seconds]
    rows = _Rows()
    for place, cluster in enumerate(graph.clusters):
        rows.add(((starts[place] + number, 1.0) for number in range(len(cluster.strategies))), 1.0, 1.0)
    for (left, right), matrix in graph.pairs.items():
        _add_pair(rows, costs, matrix, starts[left], starts[right])
    for values in dict.fromkeys(graph.live):
        held: dict[int, float] = {}
        for value in values:
            start = starts[graph.values[value].cluster]
            for number, size in enumerate(graph.held(value)):
                held[start + number] = held.get(start + number, 0.0) + size / 2**20
        rows.add(iter(held.items()), -np.inf, limit / 2**20)
    at, columns, values_ = zip(*rows.entries)
    matrix = coo_array((values_, (at, columns)), shape=(len(rows.low), len(costs))).tocsr()
    is_integer = np.arange(len(costs)) < starts[-1]
    found = milp(
        np.array(costs) * 1e6,
        integrality=is_integer,
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix, rows.low, rows.high),
        options={"time_limit": seconds},
    )
    if found.x is None:
        raise ValueError(found.message)
    return [int(np.argmax(found.x[start:end])) for start, end in zip(starts, starts[1:])], found


def _add_pair(rows: _Rows, costs: list[float], matrix: np.ndarray[Any, Any], left: int, right: int) -> None:
    """Add a variable for each class of pairs of strategies with equal cost; it is 1 if such a pair is chosen."""
    _, first, row_of = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
    _, second, column_of = np.unique(matrix, axis=1, return_index=True, return_inverse=True)
    small = matrix[np.ix_(first, second)]
    start = len(costs)
    costs += [float(cost) for cost in small.ravel()]
    height, width = small.shape
    for row in range(height):
        chosen = [(left + number, -1.0) for number, one in enumerate(row_of.ravel()) if one == row]
        rows.add(iter([*((start + row * width + column, 1.0) for column in range(width)), *chosen]), 0.0, 0.0)
    for column in range(width):
        chosen = [(right + number, -1.0) for number, one in enumerate(column_of.ravel()) if one == column]
        rows.add(iter([*((start + row * width + column, 1.0) for row in range(height)), *chosen]), 0.0, 0.0)
