"""Rounds of user priorities.

Source: docs/semantics/propagation.md#user-priorities
"""

from __future__ import annotations

import pytest

from pyshardy.errors import InvalidShardingError
from pyshardy.propagation.engine import PropagationEngine
from pyshardy.propagation.options import PropagateOptions
from pyshardy.propagation.program import ManualView, Program
from pyshardy.propagation.run import propagate_program
from pyshardy.propagation.step import StepError
from pyshardy.propagation.user_priorities import mask, user_priority_rounds
from support.small_programs import Builder

from ..core.short import mesh, sharding
from .short import text

S = (8, 8)
PQR = mesh("p=2 q=2 r=2")


def rounds(program: Program, values: list[int]) -> dict[int, list[str | None]]:
    """The shardings of some values after every round."""
    seen: dict[int, list[str | None]] = {}

    def look(priority: int, engine: PropagationEngine) -> None:
        seen[priority] = [text(engine.shardings[value]) for value in values]

    propagate_program(program, PropagateOptions(), look)
    return seen


def example() -> tuple[Program, list[int]]:
    b = Builder(m=PQR)
    x = b.value(S, '[{"p"}p2, {"q", ?}p0], replicated={"r"}')
    y = b.value(S, '[{"r", ?}p1, {?}p3]')
    total = b.elementwise(x, y)
    sine = b.elementwise(total, sharding='[{?}, {"p", ?}p7]')
    b.returns(sine)
    return b.build(), [x, y, total, sine]


def test_the_example() -> None:
    early = '[{}, {"q", ?}], replicated={"p", "r"}'
    assert rounds(*example()) == {
        0: [early, '[{}, {}], replicated={"r"}', '[{?}, {"q", ?}]', '[{?}, {}], replicated={"p"}'],
        1: [early, '[{"r", ?}, {}]', '[{"r", ?}, {"q", ?}]', '[{"r", ?}, {}], replicated={"p"}'],
        2: ['[{"p"}, {"q", ?}], replicated={"r"}', '[{"r", ?}, {}]', '[{"r", ?}, {"q", ?}]',
            '[{"r", ?}, {}], replicated={"p"}'],
        3: ['[{"p"}, {"q", ?}], replicated={"r"}', '[{"r", ?}, {"q", ?}]', '[{"r", ?}, {"q", ?}]',
            '[{"r", ?}, {}], replicated={"p"}'],
        7: ['[{"p"}, {"q", ?}], replicated={"r"}', '[{"r", ?}, {"q", ?}]', '[{"r", ?}, {"q", ?}]',
            '[{"r", ?}, {"p", ?}]'],
    }  # fmt: skip


def test_without_user_priorities_they_are_ignored() -> None:
    program, (x, _, total, _) = example()
    found = propagate_program(program, PropagateOptions(user_priorities=False))
    assert text(found.shardings[x]) == '[{"p"}p2, {"q", ?}p0], replicated={"r"}'
    assert text(found.shardings[total]) == '[{?}, {"q", ?}]'


@pytest.mark.parametrize(
    ("given", "masked"),
    [
        ('[{"p"}p2, {"q", ?}p0]', '[{}, {"q", ?}], replicated={"p"}'),
        ('[{"r", "p"}p2, {"q", ?}p1]', '[{}, {}], replicated={"p", "q", "r"}'),
        ("[{?}p1, {?}p0]", "[{}, {?}]"),
        ('[{"p"}p0, {?}]', '[{"p"}, {?}]'),
        ('[{"q"}p1, {}], replicated={"p"}, unreduced=max{"r"}', '[{}, {}], replicated={"p", "q"}, unreduced=max{"r"}'),
        ('[{"s":(4)2, "s":(1)2}p1, {?}]', '[{}, {?}], replicated={"s":(1)2, "s":(4)2}'),
        ('[{"s":(2)2, ?}p1, {}], replicated={"s":(1)2}', '[{}, {}], replicated={"s":(1)2, "s":(2)2}'),
    ],
)
def test_masking(given: str, masked: str) -> None:
    assert mask(sharding(given), {"m": mesh("p=2 q=2 r=2 s=8")}) is sharding(masked)


def test_gaps_are_skipped_and_round_0_is_always_there() -> None:
    b = Builder(m=PQR)
    b.returns(b.elementwise(b.value(S, '[{"p"}p9, {"q"}p4]')))
    assert list(rounds(b.build(), [])) == [0, 4, 9]
    plain = Builder(m=PQR)
    plain.returns(plain.elementwise(plain.value(S, '[{"p"}p0, {?}]')))
    assert list(rounds(plain.build(), [])) == [0]


def test_no_priorities_are_left() -> None:
    program, _ = example()
    found = propagate_program(program)
    assert all(dim.priority is None for one in found.shardings if one is not None for dim in one.dims)


def test_a_dimension_gets_back_what_the_user_gave_and_the_rest_stays() -> None:
    b = Builder(m=PQR)
    x = b.value(S, '[{"p", ?}p1, {?}]')
    y = b.value(S, '[{?}, {"q"}]')
    b.returns(b.elementwise(x, y))
    assert rounds(b.build(), [x])[0] == ['[{}, {"q", ?}], replicated={"p"}']
    assert rounds(b.build(), [x])[1] == ['[{"p", ?}, {"q", ?}]']


def test_only_the_same_reference_leaves_the_replicated_axes() -> None:
    b = Builder(m=mesh("s=8"))
    x = b.value(S, '[{"s":(1)2}p1, {"s":(2)2}p2]')
    b.returns(b.elementwise(x))
    assert rounds(b.build(), [x]) == {
        0: ['[{}, {}], replicated={"s":(1)2, "s":(2)2}'],
        1: ['[{"s":(1)2}, {}], replicated={"s":(2)2}'],
        2: ['[{"s":(1)2}, {"s":(2)2}]'],
    }


def test_an_open_dimension_receives_nothing_before_its_round() -> None:
    b = Builder(m=PQR)
    x, y = b.value(S, '[{"p"}, {?}]'), b.value(S, "[{?}p1, {?}]")
    b.returns(b.elementwise(x, y))
    assert rounds(b.build(), [y]) == {0: ["[{}, {?}]"], 1: ['[{"p", ?}, {?}]']}


def test_results_of_the_main_function_have_priorities_too() -> None:
    b = Builder(m=PQR)
    x = b.value(S, '[{"p"}p1, {?}]')
    (result,) = b.returns(b.elementwise(x), shardings=['[{?}, {"p"}p2]'])
    assert rounds(b.build(), [result]) == {
        0: ['[{?}, {}], replicated={"p"}'], 1: ['[{?}, {}], replicated={"p"}'], 2: ['[{?}, {"p"}]']
    }  # fmt: skip


def test_groups_are_masked_and_restored_member_by_member() -> None:
    b = Builder(m=PQR)
    x, y = (b.value(S, '[{"p", ?}p1, {?}]') for _ in range(2))
    z = b.value(S, '[{?}, {"q"}]')
    b.groups.append((x, y))
    b.returns(b.elementwise(x, z), b.elementwise(y))
    masked, restored = '[{}, {"q", ?}], replicated={"p"}', '[{"p", ?}, {"q", ?}]'
    assert rounds(b.build(), [x, y]) == {0: [masked, masked], 1: [restored, restored]}


def test_a_dead_op_with_a_priority_does_no_harm() -> None:
    b = Builder(m=PQR)
    x = b.value(S)
    b.elementwise(x, sharding='[{"p"}p1, {?}]')
    b.returns(x)
    found = propagate_program(b.build())
    assert found.erased == (1,)
    assert found.shardings[x] is None


def test_the_rounds_may_be_driven_one_by_one() -> None:
    program, (x, *_) = example()
    engine = PropagationEngine(program)
    steps = user_priority_rounds(engine)
    assert next(steps) == 0
    assert text(engine.shardings[x]) == '[{}, {"q", ?}], replicated={"p", "r"}'
    assert list(steps) == [1, 2, 3, 7]
    assert text(engine.shardings[x]) == '[{"p"}, {"q", ?}], replicated={"r"}'


def test_an_edge_that_lost_its_mask_is_refused() -> None:
    # The edge of a manual computation takes the replicated axes of the computation when it is updated, so q,
    # which waits for round 1 in dimension 0, is free in between and used in dimension 1.
    b = Builder(m=PQR)
    x = b.value(S, '[{?}, {"r", ?}]')
    number = len(b.ops)
    (result,) = b.op("manual", None, x, results=[S])
    argument = b.value((4, 8), owner=number)
    with b.inside(number):
        view = ManualView(True, sharding('[{"p", "q", ?}p1, {?}]'), ("p",))
        edge = b.edge(argument, (number, 0), sharding='[{"q", ?}p1, {?}]', view=view, recognised=False)
        user = b.elementwise(edge, sharding='[{?}, {"r", "q", ?}]')
        b.terminator(user)
    b.returns(result)
    with pytest.raises(StepError, match=r'sharding a tensor: got axis "q" twice') as caught:
        propagate_program(b.build())
    assert b.ops[caught.value.op].name == "edge"
    assert isinstance(caught.value.__cause__, InvalidShardingError)
