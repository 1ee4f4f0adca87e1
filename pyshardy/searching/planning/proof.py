"""Decides whether a search has tried all shardings of inputs, so that none can beat its plan by the cost model."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from math import prod

from pyshardy.core.axes import Dims
from pyshardy.report.plan import PlanRow
from pyshardy.searching.autopartition.space import Assignment, Space
from pyshardy.searching.planning.estimates import Estimates

MOST_TRIED = 200
"""All shardings of inputs are tried if there are at most this many."""
_MOST_AXES = 3


def all_assignments(space: Space, most: int) -> list[Assignment]:
    """All assignments of a space; none if there are more than `most`, or no sharding to find.

    Each mesh axis is on at most one dimension of an input. The axes of a dimension are in any order. Shards have equal
    sizes.
    """
    if len(space.axes) > _MOST_AXES or not any(group.is_free for group in space.groups):
        return []
    choices: list[list[Dims]] = []
    for number, group in enumerate(space.groups):
        choices.append(list(_all_dims(space, number)) if group.is_free else [space.empty[number]])
        if prod(map(len, choices)) > most:
            return []
    return list(product(*choices))


def _all_dims(space: Space, group: int) -> Iterator[Dims]:
    rank = len(space.groups[group].shape)
    names = [name for name, _ in space.axes]
    seen = set()
    for places in product(range(-1, rank), repeat=len(names)):
        for order in permutations(zip(names, places)):
            dims = tuple(tuple(name for name, place in order if place == dim) for dim in range(rank))
            if dims not in seen and space.fits(group, dims):
                seen.add(dims)
                yield dims


def none_is_better(estimates: Estimates, assignments: list[Assignment], chosen: PlanRow) -> bool:
    """Whether all assignments were estimated as by `pyshardy.cost`, and a plan is no worse than any of them.

    Args:
        estimates: The estimates; assignments that differ only by exchanged axes share one.
        assignments: The assignments.
        chosen: The plan.
    """
    found, first = estimates.checker.found, estimates.checker.symmetry.first
    if not assignments or not estimates.is_like_whole or any(first(one) not in found for one in assignments):
        return False
    rows = [estimates.row_of("", one) for one in assignments if found[first(one)] is not None]
    return all(row is not None and not estimates.options.objective.is_better(row, chosen) for row in rows)
