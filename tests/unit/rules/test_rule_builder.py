from __future__ import annotations

from pyshardy.rules.rule import FactorKind
from pyshardy.rules.rule_builder import RuleBuilder, identity_rule


def test_fillers_come_last_and_are_not_shared() -> None:
    builder = RuleBuilder([(6, 4), (3,)], [(4,)])
    builder.factor(4, [(0, 1), (2, 0)], FactorKind.PERMUTATION, blocked=True)
    assert str(builder.finish()) == ("<([j, i], [k])->([i]) {i=4, j=1, k=1} permutation={i} blocked_propagation={i}>")


def test_factors_of_one_dimension_go_major_to_minor() -> None:
    builder = RuleBuilder([(6,)], [(6,)])
    builder.factor(3, [(0, 0)])
    builder.factor(2, [(0, 0), (1, 0)])
    assert str(builder.finish()) == "<([ij])->([j]) {i=3, j=2}>"


def test_size_one_does_not_join_another_factor() -> None:
    builder = RuleBuilder([(6,)], [(6,)])
    builder.factor(6, [(0, 0)])
    builder.factor(1, [(0, 0), (1, 0)])
    assert str(builder.finish()) == "<([i])->([j]) {i=6, j=1}>"


def test_tokens_and_scalars_have_no_slots() -> None:
    builder = RuleBuilder([None, (), (4,)], [(4,)])
    assert builder.everywhere(0) == [(2, 0), (3, 0)]
    assert (list(builder.operands), list(builder.results)) == ([0, 1, 2], [3])


def test_identity() -> None:
    assert str(identity_rule((8, 1), operand_count=1, result_count=2)) == "<([i, j])->([i, j], [i, j]) {i=8, j=1}>"
    assert str(identity_rule(())) == "<([])->([])>"
