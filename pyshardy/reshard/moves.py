"""What shards hold and need of one dimension that an op cuts, pads, reverses, joins or reshapes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import NamedTuple

from pyshardy.core.mesh import check_count
from pyshardy.reshard.exchange_plan import ExchangePlan, Holding, Span, plan_exchange
from pyshardy.reshard.halo import Window

MOST_ROUNDS = 32
"""More permutations than this take longer than gathering."""


class Move(NamedTuple):
    """How one dimension of every shard of an op's result comes from shards of its operands.

    Attributes:
        plan: Which elements go where.
        size: How many elements of every shard are moved: those of the buffer that is sent from.
        out_size: Size of the buffer that is filled.
        result_size: Size of the result's shard: that of this buffer, or what it takes at a distance.
        stride: Only every n-th element of a shard is moved.
        phases: Per shard, the first element that is moved.
        dilation: The distance at which elements are put into the shard of the result.
        offsets: Per shard, where the first one is put.
    """

    plan: ExchangePlan
    size: int
    out_size: int
    result_size: int
    stride: int = 1
    phases: tuple[int, ...] = ()
    dilation: int = 1
    offsets: tuple[int, ...] = ()

    @property
    def is_short(self) -> bool:
        """Whether it takes few enough permutations."""
        return len(self.plan.rounds) <= MOST_ROUNDS


def _ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def _check(shards: int) -> None:
    check_count(shards, "finding what shards need of each other", "shards")


@lru_cache(maxsize=1024)
def slice_move(window: Window) -> Move:
    """The move of a dimension that is sliced; places are numbered as in the result.

    Raises:
        InvalidShardingError: There are too many shards to look at each.

    >>> move = slice_move(Window(size=12, out_size=4, shards=4, low=-4))
    >>> [[(piece.source, piece.target) for piece in round.pieces] for round in move.plan.rounds], move.plan.sent
    ([[(1, 0), (2, 3)]], 1)
    """
    _check(window.shards)
    size, stride, start, shards = window.shard, window.stride, -window.low, range(window.shards)
    origins = [_ceil(shard * size - start, stride) for shard in range(window.shards + 1)]
    held = [Span(origin, max(0, origin), min(window.out_size, end)) for origin, end in zip(origins, origins[1:])]
    phases = tuple(start + stride * origins[shard] - shard * size for shard in shards)
    plan = plan_exchange([Holding(tuple(held))], _even(window.out_size, window.shards))
    return Move(plan, _ceil(size, stride), window.out_shard, window.out_shard, stride, phases)


@lru_cache(maxsize=1024)
def pad_move(window: Window) -> Move:
    """The move of a dimension that is padded; places are numbered as in the operand.

    >>> move = pad_move(Window(size=4, out_size=12, shards=4, low=4))
    >>> [[(piece.source, piece.target) for piece in round.pieces] for round in move.plan.rounds], move.plan.sent
    ([[(0, 1), (3, 2)]], 1)
    """
    _check(window.shards)
    dilation, out_size, low = window.dilation, window.out_shard, window.low
    count = _ceil(out_size, dilation)
    origins = [_ceil(shard * out_size - low, dilation) for shard in range(window.shards)]
    offsets = tuple(low + origin * dilation - shard * out_size for shard, origin in enumerate(origins))
    limit = min(window.size, _ceil(window.out_size - low, dilation))
    wanted = [
        Span(origin, max(0, origin), min(limit, _ceil((shard + 1) * out_size - low, dilation)))
        for shard, origin in enumerate(origins)
    ]
    plan = plan_exchange([Holding(tuple(_even(window.size, window.shards)))], wanted)
    return Move(plan, window.shard, count, out_size, dilation=dilation, offsets=offsets)


@lru_cache(maxsize=1024)
def reverse_move(size: int, shards: int) -> Move:
    """The move of a dimension that is reversed, after every shard has been; places are numbered as in the result.

    >>> reverse_move(6, 4).plan.sent
    2
    """
    _check(shards)
    shard = _ceil(size, shards)
    origins = [size - (index + 1) * shard for index in range(shards)]
    held = tuple(Span(origin, max(0, origin), origin + shard) for origin in origins)
    return Move(plan_exchange([Holding(held)], _even(size, shards)), shard, shard, shard)


def join_move(sizes: Sequence[int], shards: int, whole: Sequence[bool] = ()) -> Move:
    """The move of a dimension along which tensors are joined; places are numbered as in the result.

    Args:
        sizes: The size of every tensor.
        shards: Number of shards of the result.
        whole: Which of them all shards hold whole; the others are sharded as the result is.

    >>> [round.size for round in join_move((4, 4, 4), 4).plan.rounds]
    [1, 1]
    """
    _check(shards)
    starts = [0, *accumulate(sizes)]
    holdings, offset = [], 0
    for number, size in enumerate(sizes):
        is_whole = bool(whole) and whole[number]
        spans = [Span(0, 0, size)] * shards if is_whole else _even(size, shards)
        shifted = tuple(Span(*(place + starts[number] for place in span)) for span in spans)
        holdings.append(Holding(shifted, offset))
        offset += size if is_whole else _ceil(size, shards)
    out_size = _ceil(starts[-1], shards)
    return Move(plan_exchange(holdings, _even(starts[-1], shards)), offset, out_size, out_size)


def border_move(held: Sequence[Span], wanted: Sequence[Span], size: int, out_size: int) -> Move:
    """The move of elements whose shards change their borders; places are numbered in row-major order."""
    return Move(plan_exchange([Holding(tuple(held))], wanted), size, out_size, out_size)


def _even(size: int, shards: int) -> list[Span]:
    shard = _ceil(size, shards)
    return [Span(index * shard, index * shard, min(size, (index + 1) * shard)) for index in range(shards)]


def block_span(shape: Sequence[int], counts: Sequence[int], indices: Sequence[int]) -> Span | None:
    """The places of a shard in row-major order, if these are one interval.

    Args:
        shape: The sizes of some dimensions.
        counts: Their numbers of shards.
        indices: Which shard it is, per dimension.

    >>> block_span((2, 7), (2, 2), (1, 1)), block_span((4, 7), (2, 2), (1, 1))
    (Span(origin=11, first=11, end=14), None)
    """
    tiles = [_ceil(size, count) for size, count in zip(shape, counts)]
    cut = next((dim for dim, tile in enumerate(tiles) if tile != 1), len(tiles))
    if any(count > 1 and shape[dim] > 1 for dim, count in enumerate(counts) if dim > cut):
        return None
    origin = filled = 0
    is_empty = False
    for dim, size in enumerate(shape):
        first = indices[dim] * tiles[dim]
        origin = origin * size + first
        is_empty |= first >= size
        filled = min(tiles[dim], size - first) if dim <= cut else filled * size
    return Span(origin, origin, origin if is_empty else origin + filled)


def block_size(shape: Sequence[int], counts: Sequence[int]) -> int:
    """The number of elements of a shard, with padding."""
    return prod(_ceil(size, count) for size, count in zip(shape, counts))
