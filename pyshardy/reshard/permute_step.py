"""Permutations, which bring axes into an order in which all-to-alls and gathers can use them.

Source: docs/semantics/reshards-and-collectives.md#permute
"""

from __future__ import annotations

from collections.abc import Iterator

from pyshardy.core.axes import AxisRef
from pyshardy.core.collectives import CollectiveKind
from pyshardy.reshard.pieces import Pieces, State


def permute(state: State) -> None:
    """Permute if that helps, or if the devices current another order in the end."""
    helps = not any(state.locked) and (
        any(_can_settle(state, dim) or _is_unordered(state, dim) for dim in state.dims) or _can_replace(state)
    )
    if helps:
        _fill(state)
    if helps or state.sharding.mesh != state.after.mesh:
        state.emit(CollectiveKind.COLLECTIVE_PERMUTE)


def _fits(state: State, first: AxisRef, second: AxisRef) -> bool:
    """Whether the size of one piece divides that of the other."""
    one, other = first.length(state.mesh), second.length(state.mesh)
    return one % other == 0 or other % one == 0


def _can_settle(state: State, dim: int) -> bool:
    """Whether the first wanted piece of a dimension can replace its first present piece."""
    current, wanted = state.current[dim], state.wanted[dim]
    return bool(current and wanted) and _fits(state, current[0], wanted[0])


def _is_unordered(state: State, dim: int) -> bool:
    """Whether pieces block one another."""
    seen, previous = {dim}, None
    for piece in state.current[dim]:
        place = state.places.get(piece)
        if place is None:
            if previous is not None and not state.wanted[dim]:
                return True
        else:
            target, index = place
            if target in seen and previous != (target, index - 1):
                return True
            seen.add(target)
        previous = place
    return False


def _can_replace(state: State) -> bool:
    """Whether a missing piece can replace an unwanted one."""
    held = state.held()
    missing = [piece for pieces in state.wanted for piece in pieces if piece not in held]
    spare = [piece for pieces in state.current for piece in pieces if piece not in state.places]
    return bool(missing and spare) and _fits(state, missing[-1], spare[-1])


def _fill(state: State) -> None:
    """Distribute all pieces again, keeping the shard count of every dimension where possible."""
    own = dict(enumerate(_own_targets_first(state)))
    pool = [piece for pieces in state.wanted for piece in pieces]
    state.distribute(lambda _: pool)
    state.distribute(lambda dim: own[dim], front=True)
    rest = [piece for pieces in own.values() for piece in pieces]
    state.distribute(lambda _: rest, front=True)
    state.take_places()


def _own_targets_first(state: State) -> Iterator[Pieces]:
    """Settle the pieces that every dimension wants; yield its unwanted pieces, in the order in which to place them."""
    for dim in state.dims:
        current, wanted = state.current[dim], state.wanted[dim]
        shards = state.size(current)
        state.capacity[dim] = shards
        while wanted and (fitted := state.fit(wanted[0], dim)):
            part, rest = fitted
            wanted[:1] = rest
            state.settled[dim].append(part)
        unwanted = [piece for piece in current if piece not in state.places]
        current.clear()
        yield _move_replaced_last(state, dim, unwanted, shards)


def _move_replaced_last(state: State, dim: int, pieces: Pieces, shards: int) -> Pieces:
    """Move unwanted pieces to the end, as many shards as the settled pieces have replaced."""
    left = state.capacity[dim]
    state.capacity[dim] = shards // left
    moved: Pieces = []
    while pieces and (fitted := state.fit(pieces[0], dim)):
        part, rest = fitted
        moved.append(part)
        pieces[:1] = rest
    state.capacity[dim] = left
    return pieces + moved
