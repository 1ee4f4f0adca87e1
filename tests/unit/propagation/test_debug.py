"""The debug attributes as plain data.

Source: docs/semantics/propagation.md#debug-attributes
"""

from __future__ import annotations

import pytest

from pyshardy.propagation.debug import PropagationEdge, format_edges, propagation_edges
from pyshardy.propagation.program import Direction
from pyshardy.propagation.step import Strategy
from pyshardy.propagation.trace import GROUP_STEP, Step

from ..core.short import mesh, ref, refs, sharding

MESH = mesh("p=8 q=2")
ROWS = sharding('[{"p"}]')


def step(number: int, target: int, dim: int, factor: int, axes: str, source: int | None = 0, op: int = 0) -> Step:
    value = None if source is None else 10 + source
    return Step(
        number, op, value, 10 + target, source, target, dim, factor, refs(axes), True, Direction.BOTH,
        Strategy.BASIC, 0, 4,
    )  # fmt: skip


def edges(*steps: Step) -> list[tuple[int, str, int, int]]:
    return [
        (edge.number, str(edge.axis), edge.source, edge.target)
        for _, edge in propagation_edges(steps, [ROWS] * 13, {"m": MESH})
    ]


def test_one_edge_for_every_axis() -> None:
    assert edges(step(3, 1, 0, 0, "p q")) == [(3, '"p"', 0, 1), (3, '"q"', 0, 1)]


def test_steps_without_a_source_and_copies_in_groups_make_none() -> None:
    assert edges(step(0, 1, 0, 0, "p", source=None), step(0, 1, 0, 0, "p", op=GROUP_STEP)) == []


def test_sub_axes_of_one_dimension_are_joined() -> None:
    joined = edges(step(0, 1, 0, 0, "q p:(1)2"), step(0, 1, 0, 1, "p:(2)2", source=2), step(0, 1, 0, 2, "p:(4)2"))
    assert joined == [(0, '"q"', 0, 1), (0, '"p"', 0, 1)]


@pytest.mark.parametrize(
    "second",
    [step(1, 1, 0, 1, "p:(2)2"), step(0, 2, 0, 1, "p:(2)2"), step(0, 1, 1, 1, "p:(2)2"), step(0, 1, 0, 1, "p:(4)2")],
    ids=["another visit", "another tensor", "another dimension", "no neighbour"],
)
def test_other_sub_axes_stay_apart(second: Step) -> None:
    assert len(edges(step(0, 1, 0, 0, "p:(1)2"), second)) == 2


def test_edges_as_text() -> None:
    given = [
        PropagationEdge(7, ref("q"), 0, 2),
        PropagationEdge(2, ref("p"), 2, 1),
        PropagationEdge(2, ref("p:(2)2"), 0, 2),
        PropagationEdge(2, ref("p:(1)2"), 0, 2),
        PropagationEdge(2, ref("p"), 2, 0),
        PropagationEdge(7, ref("p"), 2, 0),  # known from step 2
    ]
    assert format_edges(given, operand_count=2) == (
        '#sdy.propagation_edges<[{step-2 = [{"p":(1)2 = operand-0 -> [result-0]}, '
        '{"p" = result-0 -> [operand-0, operand-1]}, {"p":(2)2 = operand-0 -> [result-0]}]}, '
        '{step-7 = [{"q" = operand-0 -> [result-0]}]}]>'
    )
