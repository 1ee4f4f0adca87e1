"""The steps that take axes away from dimensions: all-to-alls and gathers.

Source: docs/semantics/reshards-and-collectives.md#all-to-all-and-gather
"""

from __future__ import annotations

from pyshardy.core.collectives import AllToAllParam, CollectiveKind
from pyshardy.reshard.pieces import Pieces, State, merge_neighbours


def move_wanted(state: State, in_order: bool) -> None:
    """Move pieces from the ends of dimensions to the dimensions that want them.

    Args:
        state: The state of the plan.
        in_order: Whether to move only pieces that the other dimension wants next.
    """
    for dim in state.dims:
        while _move_tail(state, dim, in_order):
            pass


def _move_tail(state: State, dim: int, in_order: bool) -> bool:
    current = state.current[dim]
    length, target = _tail(state, dim)
    if not length or (state.locked[dim] and length < len(current)):
        return False
    tail = current[-length:]
    if in_order and state.wanted[target][:length] != tail:
        return False
    del current[-length:]
    for piece in tail:
        if not state.current[target] and state.wanted[target][:1] == [piece]:
            state.settled[target].append(state.wanted[target].pop(0))
        else:
            state.current[target].append(piece)
    state.unlock()
    param = AllToAllParam(merge_neighbours(tail, state.mesh), dim, target)
    state.emit(CollectiveKind.ALL_TO_ALL, params=(param,))
    return True


def _tail(state: State, dim: int) -> tuple[int, int]:
    """How many pieces at the end of a dimension belong to one other dimension, and which dimension that is."""
    target, length = dim, 0
    for piece in reversed(state.current[dim]):
        place = state.places.get(piece)
        if place is None or place[0] == dim or (length and place[0] != target):
            break
        target, length = place[0], length + 1
    return length, target


def gather_unwanted(state: State) -> None:
    """Gather unwanted pieces from the ends of dimensions, and locked dimensions as a whole."""
    gathered: list[Pieces] = []
    for dim in state.dims:
        current = state.current[dim]
        start = len(current)
        while start and (state.locked[dim] or current[start - 1] not in state.places):
            start -= 1
        gathered.append(current[start:])
        del current[start:]
    state.unlock()
    if any(gathered):
        state.emit(CollectiveKind.ALL_GATHER, gathered)
