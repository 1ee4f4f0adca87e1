from __future__ import annotations

from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.reshard.factors import assign, axes_of_tensor, has_overflow, project_tensors, rebuild, shard_count
from pyshardy.rules.notation import parse_rule

from .setting import ABC, ADD, short, states

SPLIT = parse_rule("<([ijk])->([i, j, k]) {i=2, j=3, k=5}>")
MESH = Mesh([("a", 2), ("b", 4)])


def test_missing_sharding_is_closed_without_axes() -> None:
    (_, _, result) = states(ADD, '{"a"}, {}', None, None)
    assert [(factor.axes, factor.is_closed) for factor in result.factors.values()] == [((), True)] * 2


def test_overflow_hides_all_but_the_next_factor() -> None:
    operand, _ = states(SPLIT, '{"c"}', None, mesh=Mesh([("c", 3)]))
    assert has_overflow(operand)
    assert short([operand.factors[0].axes, operand.factors[0].overflow]) == ["", "c"]
    assert list(operand.factors) == [0, 1]


def test_axes_of_a_tensor_come_by_factor_number_with_overflow() -> None:
    operand, result = states(SPLIT, '{"b"}', '{"a"}, {}, {"b"}', mesh=MESH)
    assert short([axes_of_tensor(operand), axes_of_tensor(result)]) == ["b:(1)2 b:(2)2", "a b"]
    assert (shard_count(operand, MESH), shard_count(result, MESH)) == (4, 8)


def test_assigning_tells_which_tensors_change() -> None:
    tensors = states(ADD, '{"a"}, {}', '{}, {"b"}', None)
    common = [tensors[0].factors[0].axes, ()]
    assert assign(tensors, common) == {1, 2}
    assert assign(tensors, common) == set()


def test_assigning_removes_overflow() -> None:
    tensors = states(SPLIT, '{"b"}', None, mesh=MESH)
    assert assign(tensors, [tensors[0].factors[0].axes, (), ()]) == {0, 1}
    assert not has_overflow(tensors[0])


def test_rebuilding_is_the_inverse_where_all_axes_fit() -> None:
    rule = parse_rule("<([ij])->([i, j]) {i=4, j=2}>")
    old = parse_sharding('<@m, [{"a", "b"}], unreduced=max{"c"}>')
    (state, _) = project_tensors(rule, [old, None], ABC)
    assert rebuild(state, rule.operands[0], rule, ABC, "m", old) is old


def test_rebuilding_drops_priorities_and_keeps_openness_and_other_axes() -> None:
    rule = parse_rule("<([i])->([i]) {i=8}>")
    old = parse_sharding('<@m, [{"a", ?}p1], replicated={"b"}, unreduced={"c"}>')
    (state, _) = project_tensors(rule, [old, None], ABC)
    assert str(rebuild(state, rule.operands[0], rule, ABC, "n", old)) == (
        '<@n, [{"a", ?}], replicated={"b"}, unreduced={"c"}>'
    )


def test_rebuilding_stops_behind_a_factor_that_is_not_filled() -> None:
    rule = parse_rule("<([ij])->([i, j]) {i=4, j=2}>")
    (operand, _) = states(rule, '{"a", "b", "c"}', None)
    operand.factors[0].axes = operand.factors[0].axes[:1]
    assert str(rebuild(operand, rule.operands[0], rule, ABC, "m", None)) == '<@m, [{"a"}]>'
