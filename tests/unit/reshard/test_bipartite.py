"""Edges that share an end are in different rounds, of which there are no more than edges at the busiest end."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from pyshardy.reshard.bipartite import degree, edge_colouring

_EDGES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=40)


def _is_proper(edges: list[tuple[int, int]], colours: list[int]) -> bool:
    pairs = combinations(zip(edges, colours), 2)
    return all(one != other for ((a, b), one), ((c, d), other) in pairs if a == c or b == d)


@given(_EDGES)
def test_no_end_has_two_edges_in_a_round(edges: list[tuple[int, int]]) -> None:
    colours = edge_colouring(edges)
    assert len(colours) == len(edges)
    assert _is_proper(edges, colours)
    assert not edges or set(colours) <= set(range(degree(edges)))


def test_rounds_change_places_where_none_is_free_at_both_ends() -> None:
    edges = [(0, 0), (1, 1), (1, 0), (0, 1), (2, 0), (0, 2), (2, 1), (1, 2), (2, 2)]
    assert degree(edges) == 3
    assert _is_proper(edges, edge_colouring(edges))


def test_a_wrong_colouring_is_noticed() -> None:
    assert not _is_proper([(0, 0), (0, 1)], [0, 0])
    assert not _is_proper([(0, 1), (2, 1)], [1, 1])
