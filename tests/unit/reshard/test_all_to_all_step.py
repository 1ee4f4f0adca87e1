from __future__ import annotations

from pyshardy.reshard.all_to_all_step import gather_unwanted, move_wanted

from .planning import lists, state, steps


def test_the_longest_tail_for_one_dimension_moves_at_once() -> None:
    found = state("a b|", "|a b")
    move_wanted(found, in_order=True)
    assert steps(found) == ["all_to_all {a, b}: 0->1 -> |a b"]
    found = state("a b||", "|b|a")
    move_wanted(found, in_order=True)
    assert steps(found) == ["all_to_all {b}: 0->1 -> a|b|", "all_to_all {a}: 0->2 -> |b|a"]


def test_only_what_is_next_moves_in_order() -> None:
    found = state("a|b|", "||b a")
    move_wanted(found, in_order=True)
    assert steps(found) == ["all_to_all {b}: 1->2 -> a||b"]
    assert lists(found) == ("||b", "a||", "||a")
    move_wanted(found, in_order=True)
    assert steps(found)[1:] == ["all_to_all {a}: 0->2 -> ||b a"]


def test_anything_that_is_wanted_moves_out_of_order() -> None:
    found = state("a|b|", "||b a")
    move_wanted(found, in_order=False)
    assert steps(found) == ["all_to_all {a}: 0->2 -> |b|a", "all_to_all {b}: 1->2 -> ||a b"]
    assert lists(found) == ("||", "||a b", "||b a")


def test_a_hidden_dimension_moves_as_a_whole_or_not_at_all() -> None:
    found = state("a b|", "c|b", shape=(6, 16))
    move_wanted(found, in_order=True)
    assert steps(found) == []
    found = state("a b|", "c|a b", shape=(6, 16))
    move_wanted(found, in_order=True)
    assert steps(found) == ["all_to_all {a, b}: 0->1 -> |a b"]
    assert found.locked == [False, False]


def test_what_is_not_wanted_is_gathered_from_the_ends() -> None:
    found = state("a b|c d", "c|")
    gather_unwanted(found)
    assert steps(found) == ["all_gather a b|d -> |c"]
    assert lists(found) == ("|", "|c", "c|")


def test_a_hidden_dimension_is_gathered_as_a_whole() -> None:
    found = state("a b|", "b|", shape=(6, 16))
    gather_unwanted(found)
    assert steps(found) == ["all_gather a b| -> |"]
    assert found.locked == [False, False]


def test_nothing_is_gathered_where_all_is_wanted() -> None:
    found = state("a|", "|a")
    gather_unwanted(found)
    assert steps(found) == []
