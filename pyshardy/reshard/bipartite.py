"""Assigning messages to rounds; in a round every shard sends at most one message and receives at most one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

SendPair = tuple[int, int]
"""The number of a sender, and the number of a receiver."""


def degree(edges: Sequence[SendPair]) -> int:
    """The largest number of edges at any sender or receiver, which is the least number of rounds.

    >>> degree([(0, 1), (0, 2), (1, 2)])
    2
    """
    return max(
        max(Counter(ends).values(), default=0) for ends in ([one for one, _ in edges], [two for _, two in edges])
    )


def edge_colouring(edges: Sequence[SendPair]) -> list[int]:
    """A round for every edge, below the degree, such that edges with a common end have different rounds.

    Every bipartite multigraph has such a colouring (König). An edge takes the first round that is free at both ends;
    if there is none, two rounds are swapped along a path that begins at its receiver. So the first edges tend to be in
    the first rounds.

    >>> edge_colouring([(0, 0), (1, 1), (0, 1)])
    [0, 0, 1]
    """
    rounds = degree(edges) if edges else 0
    colours = [0] * len(edges)
    sending: dict[int, dict[int, int]] = {}
    receiving: dict[int, dict[int, int]] = {}
    for edge, (sender, receiver) in enumerate(edges):
        out, into = sending.setdefault(sender, {}), receiving.setdefault(receiver, {})
        free = next((colour for colour in range(rounds) if colour not in out and colour not in into), None)
        if free is None:
            free = next(colour for colour in range(rounds) if colour not in out)
            other = next(colour for colour in range(rounds) if colour not in into)
            _swap(edges, colours, (receiving, sending), receiver, (free, other))
        out[free] = into[free] = edge
        colours[edge] = free
    return colours


def _swap(
    edges: Sequence[SendPair],
    colours: list[int],
    sides: tuple[dict[int, dict[int, int]], dict[int, dict[int, int]]],
    start: int,
    pair: tuple[int, int],
) -> None:
    """Exchange two colours along the path that begins at a receiver with an edge of the first colour."""
    path = []
    node, side, (colour, next_colour) = start, 0, pair
    while (edge := sides[side][node].get(colour)) is not None:
        path.append(edge)
        side = 1 - side
        node = edges[edge][1 - side]
        colour, next_colour = next_colour, colour
    receiving, sending = sides
    for edge in path:
        sender, receiver = edges[edge]
        del sending[sender][colours[edge]], receiving[receiver][colours[edge]]
    for edge in path:
        sender, receiver = edges[edge]
        colours[edge] = pair[1] if colours[edge] == pair[0] else pair[0]
        sending[sender][colours[edge]] = receiving[receiver][colours[edge]] = edge
