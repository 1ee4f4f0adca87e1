"""The edges of propagation as a debug attribute, from the trace.

Source: docs/semantics/propagation.md#debug-attributes
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from pyshardy.core.axes import AxisRef
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of
from pyshardy.propagation.trace import GROUP_STEP, Step


class PropagationEdge(NamedTuple):
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


def propagation_edges(
    steps: Iterable[Step], shardings: Sequence[TensorSharding | None], meshes: Meshes
) -> list[tuple[Step, PropagationEdge]]:
    """The edges of steps through ops, each with its step.

    If a visit adds neighbouring sub-axes to factors of one dimension, they count as the axis that they form together.

    Args:
        steps: The steps; copies between the members of sharding groups make no edges.
        shardings: The propagated shardings, by value.
        meshes: The meshes by name.
    """
    edges: list[tuple[Step, PropagationEdge]] = []
    moves = (step for step in steps if step.op != GROUP_STEP and step.source_tensor is not None)
    for _, group in groupby(moves, lambda step: (step.number, step.target_tensor, step.dim)):
        found: list[tuple[Step, AxisRef]] = []
        for step in group:
            *axes, last = step.axes
            if found and found[-1][1].can_merge(last):
                last = found.pop()[1].merge(last, _mesh_of(step, shardings, meshes))
            found += [(step, axis) for axis in (*axes, last)]
        edges += [(step, _edge(step, axis)) for step, axis in found]
    return edges


def _mesh_of(step: Step, shardings: Sequence[TensorSharding | None], meshes: Meshes) -> Mesh:
    assert step.source is not None
    sharding = shardings[step.source]
    assert sharding is not None
    return mesh_of(sharding, meshes)


def _edge(step: Step, axis: AxisRef) -> PropagationEdge:
    assert step.source_tensor is not None
    return PropagationEdge(step.number, axis, step.source_tensor, step.target_tensor)


def format_edges(edges: Iterable[PropagationEdge], operand_count: int) -> str:
    """The edges of one op as the attribute writes them; of equal edges, only the first step counts.

    >>> q = AxisRef("q")
    >>> format_edges([PropagationEdge(3, q, 2, 0), PropagationEdge(3, q, 2, 1), PropagationEdge(4, q, 2, 1)], 2)
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
