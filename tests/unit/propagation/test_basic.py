"""The basic strategy: only what all tensors of the op can follow.

Source: docs/semantics/propagation.md#basic-strategy
"""

from __future__ import annotations

import pytest

from pyshardy.propagation.basic import propagate_basic
from pyshardy.propagation.program import Direction
from pyshardy.propagation.step import Strategy
from pyshardy.rules.notation import parse_rule

from ..core.short import mesh, refs
from .short import BINARY, BOTH, MATMUL, after, state, step_of, tensor

PQR = "p=2 q=2 r=2"
RESHAPE = "<([i, j])->([ij]) {i=8, j=4}>"


def basic(rule: str, texts: list[str | None], axes: str = PQR, **flags: bool) -> list[str | None]:
    return after(step_of(rule, Strategy.BASIC, **flags), texts, mesh(axes))


@pytest.mark.parametrize(
    ("before", "result"),
    [
        # a dot of 8x8 by 8x8
        (['[{"p"}, {}]', "[{?}, {?}]", None], '[{"p", ?}, {?}]'),
        (['[{"p"}, {?}]', '[{?}, {"p"}]', None], None),
        (['[{"p", "q"}, {?}]', '[{?}, {"q"}]', None], '[{"p", ?}, {?}]'),
        (['[{"p"}, {?}]', "[{?}, {?}]", '[{?}, {?}], replicated={"p"}'], '[{?}, {?}], replicated={"p"}'),
        (['[{"p"}, {?}]', "[{?}, {?}]", '[{?}, {?}], unreduced={"p"}'], '[{?}, {?}], unreduced={"p"}'),
        (['[{"p"}, {?}]', '[{?}, {?}], replicated={"p"}', None], '[{"p", ?}, {?}]'),
        (['[{"p"}, {?}]', '[{?}, {?}], unreduced={"p"}', None], '[{"p", ?}, {?}]'),
        (['[{"p"}, {?}]', "[{?}, {?}]", "[{}, {?}]"], "[{}, {?}]"),
        (['[{"p"}, {?}]', '[{?}, {"q"}]', None], '[{"p", ?}, {"q", ?}]'),
        (['[{"p"}, {?}]', '[{?}, {"q"}]', '[{?}, {"r", ?}]'], '[{"p", ?}, {"r", ?}]'),
    ],
)
def test_a_product_takes_what_does_not_conflict(before: list[str | None], result: str | None) -> None:
    assert basic(MATMUL, before) == [*before[:2], result]


def test_an_axis_of_the_result_is_in_the_way() -> None:
    before = ['[{?}, {"p"}]', "[{?}, {?}]", '[{"p", ?}, {?}]']
    assert basic(MATMUL, before) == before


def test_tensors_that_agree_on_a_part_pass_no_more_than_that() -> None:
    before = ['[{?}, {"p", "q"}]', '[{"p", "r"}, {?}]', None]
    assert basic(MATMUL, before) == before


def test_an_operand_gives_to_the_other() -> None:
    before = ['[{?}, {"p"}]', None, None]
    assert basic(MATMUL, before) == ['[{?}, {"p"}]', '[{"p", ?}, {?}]', None]


@pytest.mark.parametrize(
    ("axes", "result", "conservative"),
    [
        ("p=4 q=4", '[{"p", "q":(1)2, ?}]', '[{"p", ?}]'),
        ("p=4 q=3", '[{"p", ?}]', '[{"p", ?}]'),
        ("p=3 q=2", None, None),
        ("p=8 q=2", '[{"p", ?}]', '[{"p", ?}]'),
        ("p=16 q=2", '[{"p":(1)8, ?}]', None),
    ],
)
def test_a_factor_that_is_not_minor_most_takes_what_divides(
    axes: str, result: str | None, conservative: str | None
) -> None:
    before = ['[{"p", "q"}, {}]', None]
    assert basic(RESHAPE, before, axes) == [before[0], result]
    assert basic(RESHAPE, before, axes, is_conservative=True) == [before[0], conservative]


def test_a_tensor_without_the_factor_cuts_too() -> None:
    # the third operand has no i, but p elsewhere
    rule = "<([i], [i], [j])->([i, j]) {i=8, j=8}>"
    before = ['[{"p", "q"}]', None, '[{"q"}]', "[{?}, {}]"]
    assert basic(rule, before) == ['[{"p", "q"}]', '[{"p", ?}]', '[{"q"}]', '[{"p", ?}, {}]']


def test_a_cut_axis_is_a_sub_axis() -> None:
    before = ['[{"p", ?}, {?}]', '[{?}, {"p":(2)2}]', None]
    assert basic(BINARY, before, "p=4") == ['[{"p", ?}, {?}]', '[{"p":(1)2, ?}, {"p":(2)2}]', '[{"p":(1)2, ?}, {?}]']
    assert basic(BINARY, before, "p=4", is_conservative=True) == before


def test_the_clamp_of_the_other_strategy() -> None:
    rule = "<([i, j], [i, j], [i, j])->([i, j]) {i=8, j=8}>"
    before = ['[{"p", "q"}, {?}]', None, '[{?}, {"q"}]', None]
    assert basic(rule, before) == [before[0], '[{"p", ?}, {?}]', '[{"p", ?}, {"q"}]', '[{"p", ?}, {?}]']


@pytest.mark.parametrize(
    ("directions", "changed"),
    [
        ([BOTH, BOTH, BOTH], [(2, 0), (2, 1)]),
        ([Direction.FORWARD, Direction.BACKWARD, BOTH], [(2, 0)]),
        ([Direction.BACKWARD, Direction.FORWARD, BOTH], [(2, 1)]),
        ([Direction.NONE, Direction.NONE, Direction.NONE], []),
    ],
)
def test_changed_factors_are_reported(directions: list[Direction], changed: list[tuple[int, int]]) -> None:
    states = [
        tensor(state("p"), None, state()),
        tensor(None, state("q"), state()),
        tensor(state(), state(), None),
    ]
    assert propagate_basic(parse_rule(MATMUL), states, directions, mesh(PQR), False) == changed
    assert [states[2].factors[factor].axes for _, factor in changed] == [refs("pq"[factor]) for _, factor in changed]
