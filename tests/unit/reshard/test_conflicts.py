from __future__ import annotations

from itertools import product

import pytest

from pyshardy.core.intern import clear_caches
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.reshard import conflicts
from pyshardy.reshard.conflicts import agreed_axes, common_axes, shared_axes
from pyshardy.reshard.factors import project_tensors
from pyshardy.rules.notation import parse_rule
from pyshardy.rules.rule import Rule

from .setting import ABC, ADD, DOT, counts, shardings, short, states

ABS = parse_rule("<([i, j])->([i, j]) {i=8, j=16}>")
REVERSE = parse_rule("<([i, j])->([i, j]) {i=8, j=16} permutation={j}>")


def common(rule: Rule, *texts: str | None, mesh: Mesh = ABC) -> list[str]:
    return short(common_axes(rule, states(rule, *texts, mesh=mesh), counts(rule), mesh))


def test_compatible_tensors_keep_what_they_have() -> None:
    assert common(DOT, '{"a"}, {"b"}', '{"b"}, {"c"}', '{"a"}, {"c"}') == ["a", "c", "b"]


@pytest.mark.parametrize(
    ("rule", "texts"),
    [
        (ADD, ('{"a"}, {}', '{"b"}, {}', '{"a"}, {}')),
        (DOT, ('{"a"}, {}', '{}, {"a"}', '{"a"}, {}')),
        (DOT, ('{"a"}, {"b"}', '{"b"}, {"a":(1)2}', None)),
        (parse_rule("<([i])->([i]) {i=8} need_replication={i}>"), ('{"a"}', '{"a"}')),
    ],
    ids=["a factor differs", "two factors share an axis", "two factors share a part", "an axis must be gathered"],
)
def test_incompatible(rule: Rule, texts: tuple[str | None, ...]) -> None:
    assert agreed_axes(rule, states(rule, *texts, mesh=Mesh([("a", 4), ("b", 2)]))) is None


GATHERED = parse_rule("<([i, j])->([i, j]) {i=8, j=8} need_replication={i}>")
OF_TWO_DIMS = {None, "{}, {}", '{"a"}, {}', '{"b"}, {"a"}', '{}, {"a":(1)2}'}


@pytest.mark.parametrize("rule", [ADD, DOT, ABS, REVERSE, GATHERED])
def test_shared_axes_are_those_that_all_tensors_agree_on(rule: Rule) -> None:
    """As if every tensor were looked at by itself."""
    mesh = Mesh([("a", 4), ("b", 2)])
    agreed = 0
    for texts in product(sorted(OF_TWO_DIMS, key=str), repeat=len(rule.tensors)):
        expected = agreed_axes(rule, states(rule, *texts, mesh=mesh))
        assert shared_axes(rule, shardings(*texts), mesh) == expected, texts
        agreed += expected is not None
    assert 0 < agreed < len(OF_TWO_DIMS) ** len(rule.tensors)


def test_shared_axes_that_do_not_fit_are_no_agreement() -> None:
    mesh, sharded = Mesh([("a", 4)]), parse_sharding('<@m, [{"a"}]>')
    rule = parse_rule("<([ij])->([ij]) {i=3, j=2}>")
    assert agreed_axes(rule, project_tensors(rule, (sharded, sharded), mesh)) is not None
    assert shared_axes(rule, (sharded, sharded), mesh) is None


def test_dimensions_of_one_factor_are_compared_without_a_projection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflicts, "project_tensors", None)
    mesh, sharded = Mesh([("a", 2)]), parse_sharding('<@m, [{"a"}, {}]>')
    clear_caches()
    assert shared_axes(ADD, (sharded, sharded, sharded), mesh) is not None
    assert shared_axes(ADD, (sharded, None, sharded), mesh) is None


def test_of_two_tensors_the_more_sharded_one_is_kept() -> None:
    assert common(ABS, '{"a"}, {}', '{}, {"a", "b"}') == ["", "a b"]


def test_of_two_tensors_sharded_alike_far_the_first_is_kept() -> None:
    assert common(ABS, '{"a"}, {}', '{}, {"a"}') == ["a", ""]


def test_of_two_tensors_one_without_permuted_axes_is_kept() -> None:
    assert common(REVERSE, '{"a"}, {"b", "c"}', '{"a"}, {}') == ["a", ""]


def test_of_two_tensors_the_larger_one_is_kept() -> None:
    broadcast = parse_rule("<([i])->([j, i]) {i=8, j=4}>")
    assert common(broadcast, '{"a", "b"}', '{}, {"c"}') == ["c", ""]


def test_of_two_tensors_the_other_keeps_what_does_not_get_in_the_way() -> None:
    reduce = parse_rule("<([i, j], [])->([i]) {i=4, j=64} reduction={j}>")
    assert common(reduce, "{}, {}", None, '{"a"}') == ["", ""]
    broadcast = parse_rule("<([i])->([j, k]) {i=64, j=2, k=2}>")
    assert common(broadcast, '{"a", "b"}', '{"c"}, {"b"}') == ["a b", "c", ""]
