"""The debug attributes of a module, from the trace.

Source: docs/semantics/propagation.md#debug-attributes
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

from pyshardy.core.axes import AxisRef
from pyshardy.core.mesh import Mesh
from pyshardy.propagation.trace import GROUP, Step


class Edge(NamedTuple):
    """One axis that moved from one tensor of an op to another.

    Attributes:
        number: The number of the step.
        axis: The axis.
        source: The tensor that the axis came from, operands first.
        target: The tensor that it came to.
    """

    number: int
    axis: AxisRef
    source: int
    target: int


def edges_of(steps: Iterable[Step], mesh_of: Callable[[Step], Mesh]) -> list[tuple[Step, Edge]]:
    """The edges of steps through ops, each with its step.

    Sub-axes that follow one another in the factors of a dimension, in one visit, count as the axis that they form.

    Args:
        steps: The steps; copies between the members of sharding groups make no edges.
        mesh_of: The mesh of a step.
    """
    edges: list[tuple[Step, Edge]] = []
    moves = (step for step in steps if step.op != GROUP and step.source_tensor is not None)
    for _, group in groupby(moves, lambda step: (step.number, step.target_tensor, step.dim)):
        found: list[tuple[Step, AxisRef]] = []
        for step in group:
            *axes, last = step.axes
            if found and found[-1][1].can_merge(last):
                last = found.pop()[1].merge(last, mesh_of(step))
            found += [(step, axis) for axis in (*axes, last)]
        edges += [(step, _edge(step, axis)) for step, axis in found]
    return edges


def _edge(step: Step, axis: AxisRef) -> Edge:
    assert step.source_tensor is not None
    return Edge(step.number, axis, step.source_tensor, step.target_tensor)


def format_edges(edges: Iterable[Edge], operand_count: int) -> str:
    """The edges of one op as the attribute writes them; of equal edges, only the first step counts.

    >>> q = AxisRef("q")
    >>> format_edges([Edge(3, q, 2, 0), Edge(3, q, 2, 1), Edge(4, q, 2, 1)], 2)
    '#sdy.propagation_edges<[{step-3 = [{"q" = result-0 -> [operand-0, operand-1]}]}]>'
    """
    first: dict[tuple[AxisRef, int, int], int] = {}
    for edge in sorted(edges, key=lambda edge: edge.number):
        first.setdefault(edge[1:], edge.number)
    steps: dict[int, dict[tuple[AxisRef, int], list[int]]] = {}
    for (axis, source, target), number in first.items():
        steps.setdefault(number, {}).setdefault((axis, source), []).append(target)

    def name(tensor: int) -> str:
        return f"operand-{tensor}" if tensor < operand_count else f"result-{tensor - operand_count}"

    written = []
    for number in sorted(steps):
        found = sorted(steps[number].items(), key=lambda item: (item[0][0].sort_key(), item[0][1]))
        entries = [
            f"{{{axis} = {name(source)} -> [{', '.join(map(name, sorted(targets)))}]}}"
            for (axis, source), targets in found
        ]
        written.append(f"{{step-{number} = [{', '.join(entries)}]}}")
    return f"#sdy.propagation_edges<[{', '.join(written)}]>"


class Origins:
    """The annotation that each axis of each value originates from; the first known origin stays.

    >>> origins = Origins()
    >>> origins.add("x", [AxisRef("p")], "input: 0")
    >>> origins.inherit("y", AxisRef("p", 1, 2), "x")
    >>> origins.of("y")
    {AxisRef('p', 1, 2): 'input: 0'}
    """

    def __init__(self) -> None:
        self._of: dict[Hashable, dict[AxisRef, str]] = {}

    def add(self, value: Hashable, axes: Iterable[AxisRef], origin: str) -> None:
        """Record the origin of axes of a value."""
        known = self._of.setdefault(value, {})
        for axis in axes:
            known.setdefault(axis, origin)

    def inherit(self, value: Hashable, axis: AxisRef, source: Hashable) -> None:
        """Give an axis of a value the origin that it, or an overlapping axis, has in another value."""
        known = self._of.get(source, {})
        origin = known.get(axis)
        if origin is None:
            origin = next((known[one] for one in known if one.contains(axis) or axis.contains(one)), None)
        if origin is not None:
            self.add(value, [axis], origin)

    def of(self, value: Hashable) -> Mapping[AxisRef, str]:
        """The known origins of a value."""
        return self._of.get(value, {})
