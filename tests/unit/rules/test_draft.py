from __future__ import annotations

from pyshardy.rules.draft import Draft, identity_rule
from pyshardy.rules.rule import FactorKind


def test_fillers_come_last_and_are_not_shared() -> None:
    draft = Draft([(6, 4), (3,)], [(4,)])
    draft.factor(4, [(0, 1), (2, 0)], FactorKind.PERMUTATION, blocked=True)
    assert str(draft.finish()) == ("<([j, i], [k])->([i]) {i=4, j=1, k=1} permutation={i} blocked_propagation={i}>")


def test_factors_of_one_dimension_go_major_to_minor() -> None:
    draft = Draft([(6,)], [(6,)])
    draft.factor(3, [(0, 0)])
    draft.factor(2, [(0, 0), (1, 0)])
    assert str(draft.finish()) == "<([ij])->([j]) {i=3, j=2}>"


def test_size_one_does_not_join_another_factor() -> None:
    draft = Draft([(6,)], [(6,)])
    draft.factor(6, [(0, 0)])
    draft.factor(1, [(0, 0), (1, 0)])
    assert str(draft.finish()) == "<([i])->([j]) {i=6, j=1}>"


def test_tokens_and_scalars_have_no_slots() -> None:
    draft = Draft([None, (), (4,)], [(4,)])
    assert draft.everywhere(0) == [(2, 0), (3, 0)]
    assert (list(draft.operands), list(draft.results)) == ([0, 1, 2], [3])


def test_identity() -> None:
    assert str(identity_rule((8, 1), operand_count=1, result_count=2)) == "<([i, j])->([i, j], [i, j]) {i=8, j=1}>"
    assert str(identity_rule(())) == "<([])->([])>"
