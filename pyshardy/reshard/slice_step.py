"""Slicing: the axes that are wanted and shard nothing yet.

Source: docs/semantics/reshards-and-collectives.md#slice
"""

from __future__ import annotations

from math import gcd

from pyshardy.core.axes import AxisRef
from pyshardy.reshard.collectives import CollectiveKind
from pyshardy.reshard.pieces import Pieces, State


def slice_missing(state: State) -> None:
    """Slice as much as a permutation and all-to-alls can use."""
    state.capacity = [1 if state.hidden[dim] else _room(state, dim) for dim in state.dims]
    sliced: list[Pieces] = [[] for _ in state.dims]
    for dim in state.dims:
        if not state.hidden[dim]:
            _borrow(state, dim, sliced)
    pool: Pieces = []
    for dim in state.dims:
        if not state.hidden[dim]:
            pool += _slice_in_place(state, dim, sliced)
    counts = [len(pieces) for pieces in state.have]
    state.distribute(lambda _: pool)
    for dim in state.dims:
        sliced[dim] += state.have[dim][counts[dim] :]
    state.take_places()
    if any(sliced):
        state.emit(CollectiveKind.ALL_SLICE, sliced)


def _room(state: State, dim: int) -> int:
    """By how much a dimension must be split more to get to what is wanted."""
    have, want = state.size(state.have[dim]), state.size(state.want[dim])
    return want // gcd(have, want)


def _borrow(state: State, dim: int, sliced: list[Pieces]) -> None:
    """Slice, on a dimension that goes elsewhere, what is to follow it there, so that all of it moves at once."""
    have = state.have[dim]
    if not have or state.want[dim] or have[-1] not in state.places:
        return
    target, index = state.places[have[-1]]
    want, held = state.want[target], state.held()
    if state.have[target] or index + 1 >= len(want) or want[index + 1] in held:
        return
    length = 1
    while length < min(len(have), index + 1) and have[-length - 1] is want[index - length]:
        length += 1
    if any(_is_wanted_at(state, piece, target) for piece in have[:-length]):
        return
    end = index + 1
    while end < len(want) and want[end] not in held:
        end += 1
    extra = want[index + 1 : end]
    if not _divides(state, dim, extra):
        return
    state.capacity[target] //= state.size(have[-length:]) * state.size(extra)
    have += extra
    sliced[dim] += extra


def _is_wanted_at(state: State, piece: AxisRef, dim: int) -> bool:
    place = state.places.get(piece)
    return place is not None and place[0] == dim


def _divides(state: State, dim: int, extra: Pieces) -> bool:
    """Whether a dimension can be split by `extra` too without padding; a dynamic one by powers of two only."""
    size = state.shape[dim]
    shards = state.size(state.axes(dim)) * state.size(extra)
    return (1 << 63 if size < 0 else size) % shards == 0


def _slice_in_place(state: State, dim: int, sliced: list[Pieces]) -> Pieces:
    """Slice what a dimension wants on that dimension, as far as there is room; returns what does not fit."""
    left: Pieces = []
    want, have, held = state.want[dim], state.have[dim], state.held()
    index = 0
    while index < len(want):
        piece = want[index]
        fitted = None if piece in held else state.fit(piece, dim)
        if fitted is None:
            left += [] if piece in held else [piece]
            index += 1
            continue
        part, rest = fitted
        sliced[dim].append(part)
        want[index : index + 1] = [part, *rest]
        left += rest
        if not have and index == 0:
            state.settled[dim].append(want.pop(0))
        else:
            have.append(part)
            index += 1
        index += len(rest)
    return left
