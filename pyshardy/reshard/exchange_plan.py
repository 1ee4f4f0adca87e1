"""Moving intervals between the shards of one dimension in as few permutations as possible.

The elements stand on a line of numbered positions. Every shard holds one interval of the line and needs another. A
piece is an interval that one shard has and another needs. A permutation carries at most one piece from every shard, and
at most one to every shard. So the number of permutations is the number of pieces at the busiest shard, however many
shards there are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from pyshardy.reshard.bipartite import edge_colouring

_PARTS = (2, 3, 4)
"""The most parts into which the largest pieces may be cut."""
_ROUND_SHARE = 10
_MOST_PIECES = 4096
"""The most pieces for which cuts are tried: finding rounds for more takes seconds."""


class BufferSpan(NamedTuple):
    """A part of the line that is in the buffer of a shard, or should be.

    Attributes:
        origin: The position of the first element of the buffer.
        first: The first position in the part.
        end: The position after the last one; at most `first` if the part is empty.
    """

    origin: int
    first: int
    end: int


class Holding(NamedTuple):
    """The spans of the shards of one tensor: either disjoint parts, or everything on every shard.

    Attributes:
        spans: One per shard.
        offset: The start of this tensor's buffer in a joint buffer of several tensors.
    """

    spans: tuple[BufferSpan, ...]
    offset: int = 0


class Piece(NamedTuple):
    """Elements that go from one shard to another, or stay.

    Attributes:
        source: The shard that has them.
        target: The shard that needs them.
        source_start: Their start in the buffer of the source.
        target_start: Their start in the buffer of the target.
        size: The number of elements.
    """

    source: int
    target: int
    source_start: int
    target_start: int
    size: int


class Round(NamedTuple):
    """Pieces that move at once; every shard has at most one to send and one to receive.

    Attributes:
        size: Size of the largest piece.
        pieces: The pieces.
    """

    size: int
    pieces: tuple[Piece, ...]


class ExchangePlan(NamedTuple):
    """How all shards get the elements that they need.

    Attributes:
        kept: The pieces that shards have themselves.
        rounds: The pieces that other shards send, one permutation per round.
    """

    kept: tuple[Round, ...]
    rounds: tuple[Round, ...]

    @property
    def sent(self) -> int:
        """The number of elements along the dimension that every shard sends in all."""
        return sum(round_.size for round_ in self.rounds)


def plan_exchange(holdings: Sequence[Holding], *wanted: Sequence[BufferSpan]) -> ExchangePlan:
    """The plan for a line that shards hold as `holdings` say and need as `wanted` says.

    Positions that no shard holds stay unchanged in the buffers.

    >>> held = Holding((BufferSpan(0, 0, 3), BufferSpan(3, 3, 6)))
    >>> plan = plan_exchange([held], [BufferSpan(1, 1, 4), BufferSpan(4, 4, 6)])
    >>> plan.kept
    (Round(size=2, pieces=(Piece(source=0, target=0, source_start=1, target_start=0, size=2), \
Piece(source=1, target=1, source_start=1, target_start=0, size=2))),)
    >>> plan.rounds
    (Round(size=1, pieces=(Piece(source=1, target=0, source_start=0, target_start=2, size=1),)),)
    """
    pieces = [piece for holding in holdings for need in wanted for piece in _pieces_of(holding, need)]
    kept = [piece for piece in pieces if piece.source == piece.target]
    moved = [piece for piece in pieces if piece.source != piece.target]
    plans = [_rounds_of(moved)]
    if len(plans[0]) > 1 and len(moved) <= _MOST_PIECES:
        largest = max(round_.size for round_ in plans[0])
        plans += [_rounds_of(_cut(moved, _ceil(largest, parts))) for parts in _PARTS if parts <= largest]
    return ExchangePlan(_rounds_of(kept), min(plans, key=_cost))


def _cost(rounds: Sequence[Round]) -> int:
    """The cost of rounds: the elements sent, and a tenth more for every round."""
    return sum(round_.size for round_ in rounds) * (_ROUND_SHARE + len(rounds))


def _cut(pieces: Sequence[Piece], most: int) -> list[Piece]:
    """The pieces in parts of at most `most` elements.

    Where borders move, large and small pieces share a shard, and which of the two is large changes along the shards.
    Parts of one size fill the rounds.
    """
    return [
        Piece(source, target, start + at, target_start + at, min(most, size - at))
        for source, target, start, target_start, size in pieces
        for at in range(0, size, most)
    ]


def _ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def _pieces_of(holding: Holding, wanted: Sequence[BufferSpan]) -> list[Piece]:
    ordered = sorted((span.first, shard) for shard, span in enumerate(holding.spans) if span.first < span.end)
    if not ordered:
        return []
    low, high = ordered[0][0], max(span.end for span in holding.spans)
    found = []
    for target, need in enumerate(wanted):
        first, end = max(need.first, low), min(need.end, high)
        own = holding.spans[target]
        if own.first <= first and end <= own.end:
            found.append(_piece(holding, target, target, need, first, end))
            continue
        at = bisect_right(ordered, (first, len(wanted))) - 1
        while 0 <= at < len(ordered) and ordered[at][0] < end:
            found.append(_piece(holding, ordered[at][1], target, need, first, end))
            at += 1
    return [piece for piece in found if piece.size > 0]


def _piece(holding: Holding, source: int, target: int, need: BufferSpan, first: int, end: int) -> Piece:
    held = holding.spans[source]
    first, end = max(first, held.first), min(end, held.end)
    return Piece(source, target, holding.offset + first - held.origin, first - need.origin, end - first)


def _rounds_of(pieces: Sequence[Piece]) -> tuple[Round, ...]:
    """The rounds of the pieces, largest first, so that large pieces share rounds."""
    ordered = sorted(pieces, key=lambda piece: (-piece.size, piece.target, piece.target_start))
    rounds: dict[int, list[Piece]] = {}
    for piece, colour in zip(ordered, edge_colouring([(piece.source, piece.target) for piece in ordered])):
        rounds.setdefault(colour, []).append(piece)
    return tuple(
        Round(max(piece.size for piece in found), tuple(sorted(found, key=lambda piece: piece.source)))
        for _, found in sorted(rounds.items())
    )
