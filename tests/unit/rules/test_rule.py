from __future__ import annotations

from typing import Any

import pytest

from pyshardy.errors import InvalidRuleError
from pyshardy.rules.rule import FactorKind, Rule, factor_symbol

PASS, REDUCE, REPLICATE, PERMUTE = FactorKind
ONE = [[[0]]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((4,), ONE, ONE, (PASS, PASS)), "got 2 kinds, needed 1, one per factor"),
        (((), [], [[]]), "got 0 operands and 1 results, needed at least one of each"),
        (((4,), ONE, []), "got 1 operands and 0 results"),
        (((4,), [[[]]], ONE), "got no factor for dimension 0 of operand 0"),
        (((4,), [[[1]]], ONE), "got factor 1 in dimension 0 of operand 0, needed 0 to 0"),
        (((4,), [[[-1]]], ONE), "got factor -1 in dimension 0 of operand 0"),
        (((4,), [[[0], [0]]], ONE), "got factor 0 again in dimension 1 of operand 0"),
        (((4, 1), [[[0, 1]]], ONE), "got factor 1 of size 1 in dimension 0 of operand 0"),
        (((4, 2), ONE, ONE), "got factor 1 that no tensor has"),
        (((4,), ONE, ONE, (), (1,)), r"got blocked factors \(1,\)"),
        (((4, 2), [[[0], [1]]], ONE, (), (1, 0)), r"got blocked factors \(1, 0\), needed factors, ascending"),
        (((4, 2), [[[0], [1]]], ONE, (), (1, 1)), r"got blocked factors \(1, 1\)"),
        (((4,), ONE, [[], *ONE], (REDUCE,)), "got a reduction factor in result 1"),
    ],
)
def test_refusals(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InvalidRuleError, match=message):
        Rule(*arguments)


def test_equal_rules_are_one_object() -> None:
    assert Rule((4,), ONE, ONE) is Rule([4], (((0,),),), ONE, [PASS])


def test_sizes_need_not_multiply_to_anything() -> None:
    assert str(Rule((0, -3), [[[0, 1]]], ONE)) == "<([ij])->([i]) {i=0, j=-3}>"


def test_printing() -> None:
    rule = Rule((2, 4, 8, 3), [[[3], [1, 2]]], [[[0], [1]]], (REPLICATE, PERMUTE, REDUCE, PASS), (1, 2), is_custom=True)
    assert str(rule) == (
        "<([l, jk])->([i, j]) {i=2, j=4, k=8, l=3} reduction={k} need_replication={i} permutation={j} "
        "blocked_propagation={j, k}, custom>"
    )
    assert repr(rule) == f"Rule({rule})"
    assert str(Rule((), [[], []], [[]])) == "<([], [])->([])>"


def test_symbols_after_z() -> None:
    assert [factor_symbol(factor) for factor in (17, 18, 27, 28)] == ["z", "z_1", "z_10", "z_11"]


def test_queries() -> None:
    rule = Rule((2, 4, 8), [[[0], [2]], [], [[2], [0], [1]]], [[[0], [1]]], (PASS, PASS, REDUCE))
    assert rule.in_all_tensors(0) and not rule.in_all_tensors(1)
    assert rule.batching_factors == (0,)
    assert rule.factors_of(REDUCE) == (2,)
    assert not rule.has_compound_dims
    assert Rule((2, 4), [[[0, 1]]], [[[0], [1]]]).has_compound_dims
    assert rule.tensors == rule.operands + rule.results


def test_every_factor_is_in_all_tensors_of_scalars_only() -> None:
    assert Rule((), [[]], [[]]).in_all_tensors(7)
