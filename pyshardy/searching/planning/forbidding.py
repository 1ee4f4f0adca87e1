"""What the user forbids in a search: axes for some inputs, any axes for small ones, and many axes for one tensor."""

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
    """What the user's limits leave to one input, or to a constraint of a value.

    Attributes:
        forbidden: The mesh axes that it may not have.
        most: The most mesh axes that it may have; None for any number.
    """

    forbidden: frozenset[str] = frozenset()
    most: int | None = None

    def allows(self, dims: Dims) -> bool:
        """Whether it may have these axes."""
        axes = [axis for axes in dims for axis in axes]
        return self.forbidden.isdisjoint(axes) and (self.most is None or len(axes) <= self.most)


@dataclass(frozen=True, slots=True)
class Forbidden:
    """What the inputs and the constraints of a plan may not have.

    Attributes:
        axes: Mesh axes by the name of the inputs, or by a pattern of names; "*" stands for all axes.
        whole_below: Inputs of fewer bytes stay whole.
        axes_at_most: The most axes of an input, or of a constraint; None for any number.
    """

    axes: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    whole_below: float = 0.0
    axes_at_most: int | None = None

    def __post_init__(self) -> None:
        if self.whole_below != 0:
            check_number("whole_below", self.whole_below, "bytes, 0 or more")
        most = self.axes_at_most
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
            raise UsageError(DOING, got=f"axes_at_most={most!r}", needed="a number of mesh axes from 1")
        if not isinstance(self.axes, Mapping) or not all(
            isinstance(name, str) and isinstance(axes, (str, list, tuple, set, frozenset))
            for name, axes in self.axes.items()
        ):
            got = f"forbid={self.axes!r}"
            raise UsageError(DOING, got=got, needed="axes by names of inputs", hint='{"params": "data"}')

    def applied(self, problem: Problem) -> Problem:
        """The problem with what its inputs and constraints may not have.

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
            fact._replace(permitted=_limited(Permission(frozenset(one), self.axes_at_most)))
            for fact, one in zip(problem.inputs, found)
        ]
        return replace(problem, inputs=tuple(inputs), permitted=_limited(Permission(most=self.axes_at_most)))


def _limited(one: Permission) -> Permission | None:
    return None if one == Permission() else one


def check_number(name: str, given: object, needed: str) -> None:
    """Refuse an option of a search that is not a positive number.

    Raises:
        UsageError: It is none.
    """
    if not isinstance(given, (int, float)) or not 0 < given < math.inf:
        raise UsageError(DOING, got=f"{name}={given!r}", needed=needed)
