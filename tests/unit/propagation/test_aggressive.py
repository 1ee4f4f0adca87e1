"""The aggressive strategy: conflicts resolved by sizes.

Source: docs/semantics/propagation.md#aggressive-strategy
"""

from __future__ import annotations

import pytest

from pyshardy.propagation.aggressive import propagate_aggressive
from pyshardy.propagation.step import Strategy
from pyshardy.rules.notation import parse_rule

from ..core.short import mesh
from .short import BINARY, BOTH, MATMUL, after, state, step_of, tensor

PQR = "p=2 q=2 r=2"
PQ = "p=2 q=4"


def aggressive(rule: str, texts: list[str | None], axes: str = PQR, **flags: bool) -> list[str | None]:
    return after(step_of(rule, Strategy.AGGRESSIVE, **flags), texts, mesh(axes))


@pytest.mark.parametrize(
    ("before", "results"),
    [
        (['[{"p"}, {?}]', '[{?}, {"p"}]', None], '[{"p", ?}, {?}]'),
        (['[{"p", "q"}, {?}]', '[{?}, {"q"}]', None], '[{"p", "q", ?}, {?}]'),
        (['[{"p"}, {?}]', "[{?}, {?}]", '[{?}, {?}], replicated={"p"}'], '[{?}, {?}], replicated={"p"}'),
        (['[{"p"}, {?}]', "[{?}, {?}]", '[{?}, {?}], unreduced={"p"}'], '[{?}, {?}], unreduced={"p"}'),
        (['[{"p"}, {?}]', '[{?}, {?}], replicated={"p"}', None], '[{"p", ?}, {?}]'),
        (['[{"p"}, {?}]', "[{?}, {?}]", "[{}, {?}]"], "[{}, {?}]"),
    ],
)
def test_conflicts_in_a_product(before: list[str | None], results: str | None) -> None:
    assert aggressive(MATMUL, before) == [*before[:2], results]


def test_a_conflict_in_one_tensor_does_not_keep_the_others() -> None:
    before = ['[{?}, {"p"}]', "[{?}, {?}]", '[{"p", ?}, {?}]']
    assert aggressive(MATMUL, before) == [before[0], '[{"p", ?}, {?}]', before[2]]


def test_tensors_that_agree_on_a_part_pass_no_more_than_that() -> None:
    before = ['[{?}, {"p", "q"}]', '[{"p", "r"}, {?}]', None]
    assert aggressive(MATMUL, before) == before


def test_the_larger_source_wins() -> None:
    rule = "<([i, k], [k, j])->([i, j]) {i=8, j=16, k=4} reduction={k}>"
    assert aggressive(rule, ['[{"p"}, {?}]', '[{?}, {"p"}]', None], PQ)[2] == '[{?}, {"p", ?}]'


def test_the_first_of_equally_large_sources_wins() -> None:
    assert aggressive(MATMUL, ['[{"p"}, {?}]', '[{?}, {"p"}]', None])[2] == '[{"p", ?}, {?}]'


def test_in_an_elementwise_op_the_more_sharded_factor_wins() -> None:
    before = ['[{"q"}, {?}]', '[{?}, {"q", "p"}]', None]
    assert aggressive(BINARY, before, PQ, is_elementwise=True)[2] == '[{?}, {"q", "p", ?}]'
    assert aggressive(BINARY, before, PQ)[2] == '[{"q", ?}, {?}]'


def test_operands_of_an_elementwise_op_get_no_more_than_the_result() -> None:
    before = ['[{"p"}, {"q"}]', None, "[{}, {?}]"]
    assert aggressive(BINARY, before, PQ, is_elementwise=True) == [before[0], '[{?}, {"q", ?}]', '[{}, {"q", ?}]']
    assert aggressive(BINARY, before, PQ) == [before[0], '[{"p", ?}, {"q", ?}]', '[{}, {"q", ?}]']


def test_operands_of_other_ops_give_to_one_another() -> None:
    rule = "<([i, j], [i, j])->([i, j]) {i=8, j=1}>"
    assert aggressive(rule, ['[{"p"}, {?}]', None, "[{}, {?}]"], PQ)[1] == '[{"p", ?}, {?}]'


def test_each_tensor_is_cut_by_its_own_conflicts() -> None:
    rule = "<([i, j], [i, j], [i, j])->([i, j]) {i=8, j=8}>"
    before = ['[{"p", "q"}, {?}]', None, '[{?}, {"q"}]', None]
    assert aggressive(rule, before, is_elementwise=True) == [
        before[0], '[{"p", "q", ?}, {?}]', '[{"p", ?}, {"q"}]', '[{"p", "q", ?}, {?}]'
    ]  # fmt: skip


def test_with_equal_sizes_the_factor_of_the_first_source_goes_first() -> None:
    before = ['[{"a", ?}, {?}]', '[{?}, {"a":(1)2, ?}]', None]
    assert aggressive(BINARY, before, "a=4")[2] == '[{"a", ?}, {?}]'


@pytest.mark.parametrize(
    ("axes", "result", "conservative"),
    [
        ("p=4 q=4", '[{"p", "q":(1)2, ?}]', '[{"p", ?}]'),
        ("p=4 q=3", '[{"p", ?}]', '[{"p", ?}]'),
        ("p=3 q=2", None, None),
    ],
)
def test_divisibility(axes: str, result: str | None, conservative: str | None) -> None:
    rule, before = "<([i, j])->([ij]) {i=8, j=4}>", ['[{"p", "q"}, {}]', None]
    assert aggressive(rule, before, axes) == [before[0], result]
    assert aggressive(rule, before, axes, is_conservative=True) == [before[0], conservative]


def test_a_conflict_may_leave_a_sub_axis() -> None:
    before = ['[{"p", ?}, {?}]', '[{?}, {"p":(2)2, ?}]', None]
    assert aggressive(BINARY, before, "p=4") == [before[0], '[{"p":(1)2, ?}, {"p":(2)2, ?}]', '[{"p", ?}, {?}]']
    assert aggressive(BINARY, before, "p=4", is_conservative=True) == [before[0], before[1], '[{"p", ?}, {?}]']


def test_size_counts_the_factors_that_a_tensor_has() -> None:
    # behind an overflow the factors j and k of the first operand are closed or missing: it counts as 2 * 2 of 8
    rule = "<([ijk, l], [ijk, m])->([l, m]) {i=2, j=2, k=2, l=8, m=8}>"
    before = ['[{"q", ?}, {"p", ?}]', '[{?}, {"p", ?}]', None]
    assert aggressive(rule, before, "p=2 q=3")[2] == '[{?}, {"p", ?}]'
    assert aggressive(rule, ['[{?}, {"p", ?}]', *before[1:]], "p=2 q=3")[2] == '[{"p", ?}, {?}]'


def test_changes_are_reported_results_first() -> None:
    states = [tensor(state("p"), None, state()), tensor(None, state(), state("q")), tensor(state(), state(), None)]
    changed = propagate_aggressive(parse_rule(MATMUL), states, [BOTH] * 3, mesh(PQR), False, False)
    assert changed == [(2, 0), (0, 2)]


def test_nothing_to_do() -> None:
    states = [tensor(state(), state()) for _ in range(3)]
    assert propagate_aggressive(parse_rule(BINARY), states, [BOTH] * 2, mesh(PQR), False, True) == []
