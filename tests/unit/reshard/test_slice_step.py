from __future__ import annotations

from pyshardy.core.mesh import Mesh
from pyshardy.reshard.slice_step import slice_missing

from .planning import lists, state, steps


def test_what_is_wanted_is_sliced_where_it_is_wanted() -> None:
    found = state("a|", "a b|c")
    slice_missing(found)
    assert steps(found) == ["all_slice b|c -> a b|c"]
    assert lists(found) == ("a b|c", "|", "|")


def test_as_much_of_a_piece_as_there_is_room_for() -> None:
    found = state("y|", "x|", Mesh([("x", 8), ("y", 4)]))
    slice_missing(found)
    assert steps(found) == ["all_slice x:(1)2| -> y x:(1)2|"]
    assert lists(found) == ("|", "y x:(1)2|", "x:(1)2 x:(2)4|")


def test_what_has_no_room_where_it_is_wanted_goes_elsewhere() -> None:
    found = state("a|b|", "||a b c", shape=(3, 3, 16))
    slice_missing(found)
    assert steps(found) == ["all_slice ||c -> a|b|c"]
    found = state("b|a|", "a c|d|")
    slice_missing(found)
    assert steps(found) == ["all_slice c|| -> b c|a|"]


def test_slices_are_borrowed_by_a_dimension_that_moves_as_a_whole() -> None:
    found = state("a|", "|a b")
    slice_missing(found)
    assert steps(found) == ["all_slice b| -> a b|"]
    for other in (state("a|c", "|a b"), state("a|", "|a b", shape=(2, 16)), state("a c|", "|c a b")):
        slice_missing(other)
        assert "-> a b|" not in " ".join(steps(other))


def test_hidden_dimensions_are_not_sliced() -> None:
    found = state("a|", "b c|d", shape=(6, 16))
    slice_missing(found)
    assert steps(found) == ["all_slice |d -> a|d"]
    assert lists(found) == ("|d", "a|", "b c|")


def test_nothing_is_sliced_where_nothing_is_missing() -> None:
    found = state("a b|", "|a")
    slice_missing(found)
    assert steps(found) == []
