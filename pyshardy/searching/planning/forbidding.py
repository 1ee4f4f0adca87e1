"""What the user forbids in a search: axes for some inputs, and any axes for small ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pyshardy.core.axes import Dims
from pyshardy.core.options import did_you_mean
from pyshardy.errors import UsageError
from pyshardy.frontend.input_names import matching_names
from pyshardy.searching.autopartition.problem import Problem
from pyshardy.searching.program.search_program import DOING

ALL = "*"
"""Stands for all axes."""
_OF_ANY_MESH = ("data", "model")
"""The axes that a search over meshes may use: not every mesh has both."""


class Permission(NamedTuple):
    """What the user's limits leave to one input.

    Attributes:
        forbidden: The mesh axes that it may not have.
    """

    forbidden: frozenset[str] = frozenset()

    def allows(self, dims: Dims) -> bool:
        """Whether the input may have these axes."""
        return self.forbidden.isdisjoint(axis for axes in dims for axis in axes)


@dataclass(frozen=True, slots=True)
class Forbidden:
    """What the inputs of a plan may not have.

    Attributes:
        axes: Mesh axes by the name of the inputs, or by a pattern of names; "*" stands for all axes.
        whole_below: Inputs of fewer bytes stay whole.
    """

    axes: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    whole_below: float = 0.0

    def __post_init__(self) -> None:
        if self.whole_below != 0:
            check_number("whole_below", self.whole_below, "bytes, 0 or more")
        if not isinstance(self.axes, Mapping) or not all(
            isinstance(name, str) and isinstance(axes, (str, list, tuple, set, frozenset))
            for name, axes in self.axes.items()
        ):
            got = f"forbid={self.axes!r}"
            raise UsageError(DOING, got=got, needed="axes by names of inputs", hint='{"params": "data"}')

    def applied(self, problem: Problem) -> Problem:
        """The problem with what its inputs may not have.

        Raises:
            UsageError: A name matches no input, or the mesh has no such axis.
        """
        names = [fact.name for fact in problem.inputs]
        axes = [name for name, _ in problem.mesh.axes]
        found: list[set[str]] = [set(axes) if fact.bytes < self.whole_below else set() for fact in problem.inputs]
        for pattern, given in self.axes.items():
            forbidden = (given,) if isinstance(given, str) else tuple(given)
            unknown = [axis for axis in forbidden if axis not in (*axes, ALL, *_OF_ANY_MESH)]
            if unknown:
                raise UsageError(
                    DOING,
                    got=f"the axis {unknown[0]!r}, which {pattern!r} may not have",
                    needed=f"axes of the mesh: {', '.join(axes)}, or {ALL}",
                    hint=did_you_mean(unknown[0], axes),
                )
            for place in matching_names(pattern, names):
                found[place] |= set(axes) if ALL in forbidden else set(forbidden)
        inputs = [
            fact._replace(permitted=Permission(frozenset(one)) if one else None)
            for fact, one in zip(problem.inputs, found)
        ]
        return replace(problem, inputs=tuple(inputs)) if any(found) else problem


def check_number(name: str, given: object, needed: str) -> None:
    """Refuse an option of a search that is not a positive number.

    Raises:
        UsageError: It is none.
    """
    if not isinstance(given, (int, float)) or not 0 < given < math.inf:
        raise UsageError(DOING, got=f"{name}={given!r}", needed=needed)
