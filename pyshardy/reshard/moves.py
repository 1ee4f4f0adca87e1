"""The data that shards hold and need of a dimension that an op cuts, pads, reverses, joins or reshapes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, product
from math import prod
from operator import ge
from typing import NamedTuple

from pyshardy.core.intern import register_cache
from pyshardy.core.mesh import check_count
from pyshardy.reshard.exchange_plan import BufferSpan, ExchangePlan, Holding, plan_exchange
from pyshardy.reshard.halo import Window

MOST_ROUNDS = 32
"""The most permutations of a move: more take longer than an all-to-all or a gather."""
_FEW_ROUNDS = 3
_MOST_PLACES = 2**31 - 1
"""The largest shard: positions in a shard are 32-bit numbers."""


class ShardMove(NamedTuple):
    """How one dimension of every shard of an op's result comes from shards of its operands.

    Attributes:
        plan: Which elements go where.
        size: The number of elements per shard that take part: the size of the send buffer.
        out_size: Size of the receive buffer.
        result_size: Size of the result's shard: that of the receive buffer, or larger if elements are spread out.
        stride: Only every n-th element of a shard is moved.
        phases: Per shard, the first element that is moved.
        dilation: The distance between elements in the shard of the result.
        offsets: Per shard, the position of its first element in the result.
        held: Per shard, the interval of the line that it has, if it is one interval.
        is_all_to_all: Whether all shards send to all at once, because the result is much smaller than the operand.
    """

    plan: ExchangePlan
    size: int
    out_size: int
    result_size: int
    stride: int = 1
    phases: tuple[int, ...] = ()
    dilation: int = 1
    offsets: tuple[int, ...] = ()
    held: tuple[BufferSpan, ...] = ()
    is_all_to_all: bool = False

    @property
    def is_short(self) -> bool:
        """Whether it takes few enough permutations, and shards are small enough for 32-bit positions."""
        if self.size * self.stride + 2 * self.out_size * self.dilation + self.result_size > _MOST_PLACES:
            return False
        return self.is_all_to_all or len(self.plan.rounds) <= MOST_ROUNDS

    @property
    def sent(self) -> int:
        """The number of elements along the dimension that every shard sends."""
        return self.out_size * (len(self.held) - 1) if self.is_all_to_all else self.plan.sent

    def as_all_to_all_if_better(self) -> ShardMove:
        """The same with one all-to-all, if that sends little more than the rounds, or if there are too many rounds."""
        rounds, sent = len(self.plan.rounds), self._replace(is_all_to_all=True).sent
        is_better = rounds > MOST_ROUNDS or (rounds > _FEW_ROUNDS and sent * 10 <= self.plan.sent * 11)
        return self._replace(is_all_to_all=is_better)


def _ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def _check(shards: int) -> None:
    check_count(shards, "finding what shards need of each other", "shards")


@lru_cache(maxsize=1024)
def slice_move(window: Window) -> ShardMove:
    """The move of a sliced dimension; positions are numbered as in the result.

    Raises:
        InvalidShardingError: There are too many shards to look at each.

    >>> move = slice_move(Window(size=12, out_size=4, shards=4, low=-4))
    >>> [[(piece.source, piece.target) for piece in round.pieces] for round in move.plan.rounds], move.plan.sent
    ([[(1, 0), (2, 3)]], 1)
    """
    _check(window.shards)
    size, stride, start, shards = window.shard, window.stride, -window.low, range(window.shards)
    origins = [_ceil(shard * size - start, stride) for shard in range(window.shards + 1)]
    held = [BufferSpan(origin, max(0, origin), min(window.out_size, end)) for origin, end in zip(origins, origins[1:])]
    phases = tuple(start + stride * origins[shard] - shard * size for shard in shards)
    plan = plan_exchange([Holding(tuple(held))], _even(window.out_size, window.shards))
    found = ShardMove(plan, _ceil(size, stride), window.out_shard, window.out_shard, stride, phases, held=tuple(held))
    return found.as_all_to_all_if_better()


@lru_cache(maxsize=1024)
def pad_move(window: Window) -> ShardMove:
    """The move of a padded dimension; positions are numbered as in the operand.

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
        BufferSpan(origin, max(0, origin), min(limit, _ceil((shard + 1) * out_size - low, dilation)))
        for shard, origin in enumerate(origins)
    ]
    plan = plan_exchange([Holding(tuple(_even(window.size, window.shards)))], wanted)
    return ShardMove(plan, window.shard, count, out_size, dilation=dilation, offsets=offsets)


@lru_cache(maxsize=1024)
def reverse_move(size: int, shards: int) -> ShardMove:
    """The move of a reversed dimension, after every shard has reversed its data; positions as in the result.

    >>> reverse_move(6, 4).plan.sent
    2
    """
    _check(shards)
    shard = _ceil(size, shards)
    origins = [size - (index + 1) * shard for index in range(shards)]
    held = tuple(BufferSpan(origin, max(0, origin), origin + shard) for origin in origins)
    return ShardMove(plan_exchange([Holding(held)], _even(size, shards)), shard, shard, shard)


class JoinedPart(NamedTuple):
    """The part of a tensor that goes into a concatenation.

    Attributes:
        tensor: The number of the tensor.
        first: The first element along the joined dimension.
        size: The number of elements.
    """

    tensor: int
    first: int
    size: int


@lru_cache(maxsize=1024)
def join_move(sizes: tuple[int, ...], whole: tuple[bool, ...], parts: tuple[JoinedPart, ...], shards: int) -> ShardMove:
    """The move of a dimension along which parts of tensors are joined; positions are numbered as in the result.

    Args:
        sizes: The size of every tensor.
        whole: Per tensor, whether all shards hold it whole; the others are sharded like the result.
        parts: The parts to join, in order.
        shards: Number of shards of the result.

    >>> third = [JoinedPart(number, 0, 4) for number in range(3)]
    >>> [round.size for round in join_move((4, 4, 4), (False, False, False), tuple(third), 4).plan.rounds]
    [1, 1]
    """
    _check(shards)
    spans = [[BufferSpan(0, 0, size)] * shards if one else _even(size, shards) for size, one in zip(sizes, whole)]
    held = [size if one else _ceil(size, shards) for size, one in zip(sizes, whole)]
    offsets = [0, *accumulate(held)]
    holdings, place = [], 0
    for number, first, size in parts:
        shift, end = place - first, place + size
        shifted = [
            BufferSpan(one.origin + shift, max(place, one.first + shift), min(end, one.end + shift))
            for one in spans[number]
        ]
        holdings.append(Holding(tuple(shifted), offsets[number]))
        place = end
    out_size = _ceil(place, shards)
    return ShardMove(plan_exchange(holdings, _even(place, shards)), offsets[-1], out_size, out_size)


def border_move(held: Sequence[Blocks], wanted: Sequence[Blocks], size: int, out_size: int) -> ShardMove:
    """The move of elements whose shards change their borders; positions are numbered in row-major order.

    Args:
        held: Per shard, the intervals that it has.
        wanted: Per shard, the intervals that the result needs.
        size: Size of the buffer of a shard.
        out_size: Size of the buffer of a shard of the result.
    """
    holdings = [Holding(tuple(spans)) for spans in zip(*held)]
    return ShardMove(plan_exchange(holdings, *zip(*wanted)), size, out_size, out_size)


def _even(size: int, shards: int) -> list[BufferSpan]:
    shard = _ceil(size, shards)
    return [BufferSpan(index * shard, index * shard, min(size, (index + 1) * shard)) for index in range(shards)]


Blocks = tuple[BufferSpan, ...]
"""The intervals of a shard, in order; every shard of a tensor has the same number."""
_MOST_INTERVALS = 8


def shard_blocks(shape: Sequence[int], counts: Sequence[int]) -> list[Blocks] | None:
    """The intervals of every shard in row-major order; None if a shard has too many.

    Args:
        shape: The sizes of some dimensions.
        counts: The shard counts of these dimensions.

    >>> shard_blocks((2, 7), (2, 2))[3]
    (BufferSpan(origin=11, first=11, end=14),)
    >>> shard_blocks((2, 6), (1, 2))[1]
    (BufferSpan(origin=3, first=3, end=6), BufferSpan(origin=6, first=9, end=12))
    """
    _check(prod(counts))
    tiles = [_ceil(size, count) for size, count in zip(shape, counts)]
    cut = max((dim for dim, count in enumerate(counts) if count > 1 and shape[dim] > 1), default=0)
    if prod(tiles[:cut]) > _MOST_INTERVALS:
        return None
    return [_blocks(shape, tiles, indices, cut) for indices in product(*map(range, counts))]


def _blocks(shape: Sequence[int], tiles: Sequence[int], indices: Sequence[int], cut: int) -> Blocks:
    """The intervals of one shard; `cut` is the dimension that is split, and those after it are whole."""
    starts = [index * tile for index, tile in zip(indices, tiles)]
    behind, found = prod(shape[cut + 1 :]), []
    is_empty = any(start >= size for start, size in zip(starts, shape))
    for number, outer in enumerate(product(*map(range, tiles[:cut]))):
        row = [start + more for start, more in zip(starts, outer)]
        place = 0
        for position, size in zip((*row, starts[cut] if shape else 0), shape):
            place = place * size + position
        first = place * behind
        count = 0 if is_empty or any(map(ge, row, shape)) else min(tiles[cut], shape[cut] - starts[cut]) * behind
        found.append(BufferSpan(first - number * tiles[cut] * behind, first, first + count))
    return tuple(found)


def block_size(shape: Sequence[int], counts: Sequence[int]) -> int:
    """The number of elements of a shard, with padding."""
    return prod(_ceil(size, count) for size, count in zip(shape, counts))


for _cached in (slice_move, pad_move, reverse_move, join_move):
    register_cache(_cached.cache_clear)
