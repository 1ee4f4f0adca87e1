"""Interchangeable mesh axes: the search tries one of the assignments that differ only by exchanging them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations, product
from math import factorial, prod
from typing import Final

from pyshardy.core.sharding import TensorSharding
from pyshardy.searching.autopartition.problem import Problem
from pyshardy.searching.autopartition.space import Assignment, Space

_OF_AXES: Final = ("sdy.manual", "sdy.collective_", "sdy.all_", "sdy.reduce_scatter", "stablehlo.custom_call")
"""Prefixes of the names of ops that can refer to mesh axes."""
_MOST: Final = 24


class Symmetry:
    """The interchangeable axes of a space: of one size, on the same networks, and named nowhere in the program.

    Args:
        space: The decisions.

    Attributes:
        renamings: All ways to exchange names; the identity comes first.
    """

    def __init__(self, space: Space) -> None:
        alike = _alike(space)
        if prod(factorial(len(names)) for names in alike) > _MOST:
            alike = []
        self.renamings = list(_renamings(alike))
        self._first: dict[Assignment, Assignment] = {}

    def first(self, assignment: Assignment) -> Assignment:
        """The first assignment seen that differs from this one only by exchanged axes."""
        return self._first.setdefault(self.key(assignment), assignment)

    def key(self, assignment: Assignment) -> Assignment:
        """A key that is equal for assignments that differ only by exchanged axes."""
        if len(self.renamings) == 1:
            return assignment
        return min(_renamed(assignment, names) for names in self.renamings)


def _alike(space: Space) -> list[tuple[str, ...]]:
    problem = space.problem
    if any(kind.name.startswith(_OF_AXES) for kind in problem.program.kinds):
        return []
    named = _named(problem)
    found: dict[object, list[str]] = {}
    for (name, size), lanes in zip(problem.topology.axes, problem.topology.lanes):
        if name in space.sizes and name not in named:
            found.setdefault((size, lanes), []).append(name)
    return [tuple(names) for names in found.values()]


def _named(problem: Problem) -> set[str]:
    """The axes that shardings of the program name."""
    given: list[TensorSharding | None] = [*problem.program.shardings, *(fact.sharding for fact in problem.inputs)]
    found: set[str] = set()
    for sharding in {one for one in given if one is not None}:
        found.update(axis.name for dim in sharding.dims for axis in dim.axes)
        found.update(axis.name for axis in (*sharding.replicated, *sharding.unreduced))
    return found


def _renamings(alike: list[tuple[str, ...]]) -> Iterator[Mapping[str, str]]:
    for orders in product(*map(permutations, alike)):
        yield {name: other for names, order in zip(alike, orders) for name, other in zip(names, order)}


def _renamed(assignment: Assignment, names: Mapping[str, str]) -> Assignment:
    return tuple(tuple(tuple(names.get(axis, axis) for axis in axes) for axes in dims) for dims in assignment)
