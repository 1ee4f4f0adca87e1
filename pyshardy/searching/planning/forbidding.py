"""What the user forbids in a search: axes for some inputs, and any axes for small ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyshardy.core.options import did_you_mean
from pyshardy.errors import UsageError
from pyshardy.frontend.annotate import matching_names
from pyshardy.searching.autopartition.problem import Problem
from pyshardy.searching.planning.options import DOING

ALL = "*"
"""Stands for all axes."""
_OF_ANY_MESH = ("data", "model")
"""The axes that a search over meshes may use: not every mesh has both."""


def with_forbidden(problem: Problem, forbid: Mapping[str, Sequence[str]], whole_below: float) -> Problem:
    """The problem with what its inputs may not have.

    Args:
        problem: The problem.
        forbid: The axes that inputs may not have, by their name or a pattern of names; "*" stands for all axes.
        whole_below: Inputs of fewer bytes stay whole.

    Raises:
        UsageError: A name matches no input, or the mesh has no such axis.
    """
    names = [fact.name for fact in problem.inputs]
    axes = [name for name, _ in problem.mesh.axes]
    found: list[set[str]] = [set(axes) if fact.bytes < whole_below else set() for fact in problem.inputs]
    for pattern, forbidden in forbid.items():
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
    inputs = [fact._replace(forbidden=frozenset(one)) for fact, one in zip(problem.inputs, found)]
    return replace(problem, inputs=tuple(inputs)) if any(found) else problem
