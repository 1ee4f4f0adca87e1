from __future__ import annotations

import pytest

from pyshardy.core.mesh import Mesh
from pyshardy.reshard.greedy import choose_greedily
from pyshardy.rules.notation import parse_rule
from pyshardy.rules.rule import Rule

from .setting import ABC, ADD, DOT, counts, short, states

SORT = parse_rule("<([i, j])->([i, j]) {i=8, j=16} need_replication={j}>")


def chosen(rule: Rule, *texts: str | None, mesh: Mesh = ABC) -> list[str]:
    return short(choose_greedily(rule, states(rule, *texts, mesh=mesh), counts(rule), mesh))


def test_equal_claims_go_to_the_later_factor() -> None:
    assert chosen(ADD, '{"a"}, {}', '{}, {"a"}', None) == ["", "a"]


def test_claims_are_cut_by_what_is_chosen_before() -> None:
    assert chosen(ADD, '{"a", "b"}, {}', '{"c"}, {"b", "a"}', '{"a"}, {}') == ["a", "b"]


def test_pass_through_goes_before_reduction() -> None:
    assert chosen(DOT, '{"a"}, {}', '{"a"}, {}', "{}, {}") == ["a", "", ""]


def test_the_larger_tensor_goes_first() -> None:
    dot = parse_rule("<([i, k], [k, j])->([i, j]) {i=64, j=32, k=16} reduction={k}>")
    assert chosen(dot, '{"a"}, {"b"}', '{"a"}, {}', '{}, {"a"}') == ["", "a", "b"]


def test_axes_that_need_replication_move_to_a_batching_factor() -> None:
    assert chosen(SORT, '{"c"}, {"a", "b"}', '{"c"}, {"a", "b"}') == ["c a b", ""]


def test_axes_that_do_not_fit_the_batching_factor_are_lost() -> None:
    small = parse_rule("<([i, j])->([i, j]) {i=4, j=16} need_replication={j}>")
    assert chosen(small, '{"c"}, {"a", "b"}', '{"c"}, {"a", "b"}') == ["c a", ""]


def test_axes_of_a_factor_that_not_all_tensors_have_are_lost() -> None:
    gather = parse_rule("<([i, j], [k])->([k, j]) {i=8, j=8, k=8} need_replication={i}>")
    assert chosen(gather, '{"a"}, {}', "{}", "{}, {}") == ["", "", ""]


@pytest.mark.parametrize(("first", "expected"), [('{"a"}', ["a", ""]), ('{"a", "b"}', ["a b", ""])])
def test_a_minor_factor_waits_until_the_major_one_is_full(first: str, expected: list[str]) -> None:
    rule = parse_rule("<([ij], [j])->([ij]) {i=4, j=8}>")
    outcome = chosen(rule, first, '{"c"}', None)
    assert outcome[0] == expected[0]
    assert outcome[1] == ("c" if first == '{"a", "b"}' else "")


def test_sub_axes_are_cut_from_full_ones() -> None:
    mesh = Mesh([("a", 4), ("b", 2)])
    assert chosen(ADD, '{"a"}, {}', '{}, {"a":(2)2}', '{}, {"a":(2)2}', mesh=mesh) == ["a:(1)2", "a:(2)2"]
