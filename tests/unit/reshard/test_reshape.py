from __future__ import annotations

from pyshardy.core.mesh import Mesh
from pyshardy.reshard.reshape import reshape_axes
from pyshardy.rules.notation import parse_rule
from pyshardy.rules.rule import Rule

from .setting import short, states

SPLIT = parse_rule("<([ijk])->([i, j, k]) {i=2, j=3, k=5}>")
MESH = Mesh([("a", 2), ("b", 4), ("c", 3)])


def shared(rule: Rule, *texts: str | None, mesh: Mesh = MESH) -> list[str]:
    return short(reshape_axes(rule, states(rule, *texts, mesh=mesh), mesh))


def test_what_both_sides_can_hold_is_kept() -> None:
    assert shared(SPLIT, '{"b"}', '{"a"}, {}, {"b"}') == ["a", "", ""]


def test_an_axis_may_be_split_over_factors() -> None:
    rule = parse_rule("<([ij])->([i, j]) {i=2, j=6}>")
    assert shared(rule, '{"b"}', None) == ["b:(1)2", "b:(2)2"]


def test_the_side_that_is_split_further_decides() -> None:
    assert shared(SPLIT, '{"a"}', '{"b"}, {}, {}') == ["b:(1)2", "", ""]
    assert shared(SPLIT, '{"b"}', '{"a"}, {}, {}') == ["b:(1)2", "", ""]


def test_a_factor_hidden_by_an_overflow_counts_as_not_sharded() -> None:
    mesh = Mesh([("a", 6), ("b", 5), ("c", 2)])
    assert shared(SPLIT, '{"b"}', '{}, {"c", "a"}, {"b"}', mesh=mesh) == ["c", "a:(1)3", "a:(3)2 b"]
