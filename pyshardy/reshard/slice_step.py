"""Slices: wanted axes that do not shard the tensor yet.

Source: docs/semantics/reshards-and-collectives.md#slice
"""

from __future__ import annotations

from math import gcd

from pyshardy.core.axes import AxisRef
from pyshardy.core.collectives import CollectiveKind
from pyshardy.reshard.pieces import Pieces, State


def slice_missing(state: State) -> None:
    """Slice as many axes as a permutation and all-to-alls can use."""
    state.capacity = [1 if state.locked[dim] else _room(state, dim) for dim in state.dims]
    sliced: list[Pieces] = [[] for _ in state.dims]
    for dim in state.dims:
        if not state.locked[dim]:
            _borrow(state, dim, sliced)
    pool: Pieces = []
    for dim in state.dims:
        if not state.locked[dim]:
            pool += _slice_in_place(state, dim, sliced)
    counts = [len(pieces) for pieces in state.current]
    state.distribute(lambda _: pool)
    for dim in state.dims:
        sliced[dim] += state.current[dim][counts[dim] :]
    state.take_places()
    if any(sliced):
        state.emit(CollectiveKind.ALL_SLICE, sliced)


def _room(state: State, dim: int) -> int:
    """How much further a dimension must be split to reach its wanted size."""
    current, wanted = state.size(state.current[dim]), state.size(state.wanted[dim])
    return wanted // gcd(current, wanted)


def _borrow(state: State, dim: int, sliced: list[Pieces]) -> None:
    """Slice the pieces that are wanted after a piece where that piece is now, so that all move at once."""
    current = state.current[dim]
    if not current or state.wanted[dim] or current[-1] not in state.places:
        return
    target, index = state.places[current[-1]]
    wanted, held = state.wanted[target], state.held()
    if state.current[target] or index + 1 >= len(wanted) or wanted[index + 1] in held:
        return
    length = 1
    while length < min(len(current), index + 1) and current[-length - 1] is wanted[index - length]:
        length += 1
    if any(_is_wanted_at(state, piece, target) for piece in current[:-length]):
        return
    end = index + 1
    while end < len(wanted) and wanted[end] not in held:
        end += 1
    extra = wanted[index + 1 : end]
    if not _divides(state, dim, extra):
        return
    state.capacity[target] //= state.size(current[-length:]) * state.size(extra)
    current += extra
    sliced[dim] += extra


def _is_wanted_at(state: State, piece: AxisRef, dim: int) -> bool:
    place = state.places.get(piece)
    return place is not None and place[0] == dim


def _divides(state: State, dim: int, extra: Pieces) -> bool:
    """Whether `extra` can split a dimension further without padding; a dynamic dimension only by powers of two."""
    size = state.shape[dim]
    shards = state.size(state.axes(dim)) * state.size(extra)
    return (1 << 63 if size < 0 else size) % shards == 0


def _slice_in_place(state: State, dim: int, sliced: list[Pieces]) -> Pieces:
    """Slice the pieces that a dimension wants on that dimension, as far as there is room; return the rest."""
    left: Pieces = []
    wanted, current, held = state.wanted[dim], state.current[dim], state.held()
    index = 0
    while index < len(wanted):
        piece = wanted[index]
        fitted = None if piece in held else state.fit(piece, dim)
        if fitted is None:
            left += [] if piece in held else [piece]
            index += 1
            continue
        part, rest = fitted
        sliced[dim].append(part)
        wanted[index : index + 1] = [part, *rest]
        left += rest
        if not current and index == 0:
            state.settled[dim].append(wanted.pop(0))
        else:
            current.append(part)
            index += 1
        index += len(rest)
    return left
