"""Permuting: putting the axes in an order in which all-to-alls and gathers find them.

Source: docs/semantics/reshards-and-collectives.md#permute
"""

from __future__ import annotations

from collections.abc import Iterator

from pyshardy.core.axes import AxisRef
from pyshardy.reshard.collectives import CollectiveKind
from pyshardy.reshard.pieces import Pieces, State


def permute(state: State) -> None:
    """Permute if that helps, or if the devices have another order in the end."""
    helps = not any(state.hidden) and (
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
    """Whether the first piece wanted can take the place of the first one there is."""
    have, want = state.have[dim], state.want[dim]
    return bool(have and want) and _fits(state, have[0], want[0])


def _is_unordered(state: State, dim: int) -> bool:
    """Whether pieces stand in the way of one another."""
    seen, previous = {dim}, None
    for piece in state.have[dim]:
        place = state.places.get(piece)
        if place is None:
            if previous is not None and not state.want[dim]:
                return True
        else:
            target, index = place
            if target in seen and previous != (target, index - 1):
                return True
            seen.add(target)
        previous = place
    return False


def _can_replace(state: State) -> bool:
    """Whether a piece that is missing can take the place of one that is not wanted."""
    held = state.held()
    missing = [piece for pieces in state.want for piece in pieces if piece not in held]
    spare = [piece for pieces in state.have for piece in pieces if piece not in state.places]
    return bool(missing and spare) and _fits(state, missing[-1], spare[-1])


def _fill(state: State) -> None:
    """Deal all pieces out anew, without changing the number of shards of a dimension as far as that is possible."""
    own = dict(enumerate(_own_targets_first(state)))
    pool = [piece for pieces in state.want for piece in pieces]
    state.distribute(lambda _: pool)
    state.distribute(lambda dim: own[dim], front=True)
    rest = [piece for pieces in own.values() for piece in pieces]
    state.distribute(lambda _: rest, front=True)
    state.take_places()


def _own_targets_first(state: State) -> Iterator[Pieces]:
    """Settle what every dimension wants itself; yields its unwanted pieces, first those to go first."""
    for dim in state.dims:
        have, want = state.have[dim], state.want[dim]
        shards = state.size(have)
        state.capacity[dim] = shards
        while want and (fitted := state.fit(want[0], dim)):
            part, rest = fitted
            want[:1] = rest
            state.settled[dim].append(part)
        unwanted = [piece for piece in have if piece not in state.places]
        have.clear()
        yield _move_replaced_last(state, dim, unwanted, shards)


def _move_replaced_last(state: State, dim: int, pieces: Pieces, shards: int) -> Pieces:
    """As much of the pieces as was replaced goes last."""
    left = state.capacity[dim]
    state.capacity[dim] = shards // left
    moved: Pieces = []
    while pieces and (fitted := state.fit(pieces[0], dim)):
        part, rest = fitted
        moved.append(part)
        pieces[:1] = rest
    state.capacity[dim] = left
    return pieces + moved
