from __future__ import annotations

import pytest

from pyshardy.core.axes import AxisRef
from pyshardy.core.collectives import CollectiveKind
from pyshardy.core.mesh import Mesh
from pyshardy.reshard.pieces import merge_neighbours, split

from .planning import lists, state, steps, written

X = AxisRef("x")


@pytest.mark.parametrize(
    ("axes", "others", "pieces"),
    [
        ([X], [AxisRef("x", 1, 2), AxisRef("x", 4, 3)], "x:(1)2 x:(2)2 x:(4)3 x:(12)2"),
        ([X], [AxisRef("x", 2, 2)], "x:(1)2 x:(2)2 x:(4)6"),
        ([AxisRef("x", 2, 6)], [X], "x:(2)6"),
        ([AxisRef("x", 2, 6)], [AxisRef("x", 4, 6)], "x:(2)2 x:(4)3"),
        ([AxisRef("x", 1, 2)], [AxisRef("x", 1, 3)], "x:(1)2"),
        ([AxisRef("y"), X], [AxisRef("y"), AxisRef("z")], "y x"),
    ],
)
def test_axes_are_cut_at_the_borders_of_others(axes: list[AxisRef], others: list[AxisRef], pieces: str) -> None:
    mesh = Mesh([("x", 24), ("y", 2), ("z", 2)])
    assert written([split(axes, others, mesh)]) == pieces
    assert merge_neighbours(split(axes, others, mesh), mesh) == tuple(axes)


def test_what_both_have_in_front_is_settled() -> None:
    assert lists(state("a b|c d", "a d|c")) == ("a|c", "b|d", "d|")


def test_dimensions_whose_padding_changes_are_hidden() -> None:
    found = state("a b|c", "a|c", shape=(6, 16))
    assert found.locked == [True, False]
    assert lists(found) == ("|c", "a b|", "a|")
    assert found.places == {}
    assert state("a b|c", "a|c", shape=(-1, 16)).locked == [False, False]
    assert state("a b|c", "|c", shape=(6, 16)).locked == [False, False]
    assert state("a b|c", "a|c", shape=(3, 16)).locked == [False, False]


def test_a_hidden_dimension_is_revealed_when_nothing_shards_it() -> None:
    found = state("a b|", "a|", shape=(6, 16))
    found.unlock()
    assert found.locked == [True, False]
    found.current[0].clear()
    found.unlock()
    assert found.locked == [False, False]
    assert found.places == {AxisRef("a"): (0, 0)}


@pytest.mark.parametrize(
    ("size", "capacity", "part", "rest", "left"),
    [(4, 8, 4, [], 2), (4, 4, 4, [], 1), (4, 2, 2, [2], 1), (4, 1, None, [], 1), (4, 6, None, [], 6)],
)
def test_pieces_fit_by_their_sizes(size: int, capacity: int, part: int | None, rest: list[int], left: int) -> None:
    mesh = Mesh([("x", size), ("y", 2)])
    found = state("y|", "|", mesh)
    found.capacity = [capacity, 1]
    fitted = found.fit(X, 0)
    assert (None if fitted is None else fitted[0].length(mesh)) == part
    assert (rest if fitted is None else [axis.length(mesh) for axis in fitted[1]]) == rest
    assert found.capacity == [left, 1]


def test_pieces_are_poured_into_what_has_room() -> None:
    found = state("|", "a b c|")
    found.capacity = [2, 4]
    pool = list(map(AxisRef, "abcd"))
    found.distribute(lambda _: pool)
    assert written(found.current) == "a|b c"
    assert pool == [AxisRef("d")]
    found.capacity = [1, 2]
    found.distribute(lambda _: pool, front=True)
    assert written(found.current) == "a|d b c"


def test_what_is_wanted_is_cut_where_poured_pieces_were() -> None:
    found = state("|", "|x", Mesh([("x", 8)]))
    found.capacity = [2, 1]
    pool = [X]
    found.distribute(lambda _: pool)
    assert written(found.current) == "x:(1)2|"
    assert written(found.wanted) == "|x:(1)2 x:(2)4"
    assert written([pool]) == "x:(2)4"


def test_only_a_permutation_leads_to_the_mesh_of_the_target() -> None:
    found = state("a|b", "a|b")
    found.after = found.after.with_mesh("n")
    assert not found.is_done
    found.emit(CollectiveKind.ALL_GATHER, [[], []])
    assert found.sharding.mesh == "m"
    found.emit(CollectiveKind.COLLECTIVE_PERMUTE)
    assert found.is_done
    assert steps(found) == ["all_gather | -> a|b", "collective_permute -> a|b"]
