"""All-to-alls and gathers: what leaves a dimension.

Source: docs/semantics/reshards-and-collectives.md#all-to-all-and-gather
"""

from __future__ import annotations

from pyshardy.reshard.collectives import AllToAllParam, CollectiveKind
from pyshardy.reshard.pieces import Pieces, State, merged


def move_wanted(state: State, in_order: bool) -> None:
    """Move pieces from the ends of dimensions to those at which they are wanted.

    Args:
        state: How far the plan is.
        in_order: Whether they must be just what is wanted there next.
    """
    for dim in state.dims:
        while _move_tail(state, dim, in_order):
            pass


def _move_tail(state: State, dim: int, in_order: bool) -> bool:
    have = state.have[dim]
    length, target = _tail(state, dim)
    if not length or (state.hidden[dim] and length < len(have)):
        return False
    tail = have[-length:]
    if in_order and state.want[target][:length] != tail:
        return False
    del have[-length:]
    for piece in tail:
        if not state.have[target] and state.want[target][:1] == [piece]:
            state.settled[target].append(state.want[target].pop(0))
        else:
            state.have[target].append(piece)
    state.unhide()
    param = AllToAllParam(merged(tail, state.mesh), dim, target)
    state.emit(CollectiveKind.ALL_TO_ALL, params=(param,))
    return True


def _tail(state: State, dim: int) -> tuple[int, int]:
    """How many of the last pieces of a dimension are wanted at one other dimension, and which that is."""
    target, length = dim, 0
    for piece in reversed(state.have[dim]):
        place = state.places.get(piece)
        if place is None or place[0] == dim or (length and place[0] != target):
            break
        target, length = place[0], length + 1
    return length, target


def gather_unwanted(state: State) -> None:
    """Gather what is not wanted from the ends of dimensions, and hidden dimensions as a whole."""
    gathered: list[Pieces] = []
    for dim in state.dims:
        have = state.have[dim]
        start = len(have)
        while start and (state.hidden[dim] or have[start - 1] not in state.places):
            start -= 1
        gathered.append(have[start:])
        del have[start:]
    state.unhide()
    if any(gathered):
        state.emit(CollectiveKind.ALL_GATHER, gathered)
