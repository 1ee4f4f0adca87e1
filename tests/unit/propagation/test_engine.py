"""The fixed point over a program, in the order of the reference.

Source: docs/semantics/propagation.md#what-is-visited
Source: docs/semantics/propagation.md#the-fixed-point
Source: docs/semantics/propagation.md#sharding-groups
"""

from __future__ import annotations

import pytest

from pyshardy.core.mesh import Mesh
from pyshardy.propagation.engine import PropagationEngine
from pyshardy.propagation.options import PropagateOptions, StrategyOption
from pyshardy.propagation.program import NO_VALUE, Direction
from pyshardy.propagation.run import propagate_program
from pyshardy.propagation.schedule import LAST_ROUND
from pyshardy.propagation.step import Strategy
from support.small_programs import Builder

from ..core.short import mesh
from .engine_runs import STRATEGIES, S, builder, once, priorities
from .short import MATMUL, text


@STRATEGIES
def test_forward_and_backward_through_a_chain(strategy: Strategy) -> None:
    b = builder()
    x = b.value(S, '[{"p"}, {}]')
    y = b.elementwise(x)
    z = b.transpose(y)
    w = b.elementwise(z, sharding='[{"q", ?}, {?}]')
    results = b.returns(w, shardings=["[{}, {?}]"])
    found = once(b.build(), [x, y, z, w, *results], strategy)
    assert found[:4] == ['[{"p"}, {}]', '[{"p", ?}, {"q", ?}]', '[{"q", ?}, {"p", ?}]', '[{"q", ?}, {"p", ?}]']
    assert found[4] == '[{}, {"p", ?}]'


# Two cases where the order decides. Source: docs/semantics/propagation.md#where-the-order-decides


def test_what_was_passed_is_visited_again_before_the_sweep_goes_on() -> None:
    b = builder(mesh("p=4 q=2"))
    x = b.value((16, 16))
    exponential = b.elementwise(x)
    cosine = b.elementwise(x, sharding='[{"p", ?}, {?}]')
    product = b.dot(x, exponential)
    b.returns(exponential, cosine, product)
    row = '[{"p", ?}, {?}]'
    assert once(b.build(), [x, exponential, cosine, product]) == [row, row, row, None]


def test_uses_are_pushed_newest_first() -> None:
    b = builder(mesh("p=4 q=2"))
    y = b.value((16, 16))
    sine = b.elementwise(y)
    turned = b.transpose(sine)
    product = b.elementwise(y, turned)
    negated = b.elementwise(y, sharding='[{?}, {"p", ?}]')
    b.returns(product, negated)
    assert once(b.build(), [sine, turned, product]) == ['[{?}, {"p", ?}]', '[{"p", ?}, {?}]', None]


# One value at several places. Source: docs/semantics/propagation.md#writing-back


@STRATEGIES
def test_of_two_updates_of_one_value_the_last_stays(strategy: Strategy) -> None:
    b = builder()
    x = b.value(S)
    product = b.dot(x, x, sharding='[{"p", ?}, {"q", ?}]')
    b.returns(product)
    assert once(b.build(), [x], strategy) == ['[{?}, {"q", ?}]']


def test_op_priorities_visit_it_again() -> None:
    b = builder()
    x = b.value(S)
    product = b.dot(x, x, sharding='[{"p", ?}, {"q", ?}]')
    b.returns(product)
    assert priorities(b.build(), [x]) == ['[{"p", ?}, {"q", ?}]']


# Dead ops. Source: docs/semantics/propagation.md#dead-ops


def test_values_without_a_holder_are_neither_read_nor_written() -> None:
    b = builder()
    x, y = b.value(S, '[{"p"}, {?}]'), b.value(S)
    b.holders[y] = NO_VALUE
    total = b.elementwise(x, y)
    b.returns(total)
    engine = PropagationEngine(b.build())
    engine.run(Strategy.BASIC, LAST_ROUND)
    assert text(engine.shardings[total]) == '[{"p", ?}, {?}]'
    assert engine.shardings[y] is None
    assert engine.shardings[NO_VALUE] is None


def test_results_share_one_list() -> None:
    b = builder()
    x = b.value(S, '[{"p"}, {?}]')
    first, second, token = b.op("op", None, x, results=[S, (8,), None])
    y = b.elementwise(first)
    b.constraint(y, '[{?}, {"q"}]')
    b.returns(second)
    assert once(b.build(), [first, second, token]) == ['[{?}, {"q", ?}]', "[{?}]", "[]"]


@pytest.mark.parametrize("direction", Direction)
def test_a_barrier_lets_its_own_direction_through(direction: Direction) -> None:
    b = builder()
    x = b.value(S, '[{"p", ?}, {?}]')
    y = b.barrier(x, direction)
    z = b.constraint(y, '[{?}, {"q", ?}]')
    b.returns(z)
    program = b.build()
    forward, backward = (
        direction in (Direction.FORWARD, Direction.BOTH),
        direction in (Direction.BACKWARD, Direction.BOTH),
    )
    both = '[{"p", ?}, {"q", ?}]'
    assert priorities(program, [x, z]) == [
        both if backward else '[{"p", ?}, {?}]',
        both if forward else '[{?}, {"q", ?}]',
    ]
    engine = PropagationEngine(program)
    engine.run(Strategy.BASIC, 0)  # whatever the schedule allows
    assert (text(engine.shardings[z]) == both) is forward


def test_an_op_without_a_rule_lets_nothing_through() -> None:
    b = builder()
    x = b.value(S, '[{"p"}, {?}]')
    (y,) = b.op("reshard", None, x, results=[S])
    z = b.elementwise(y)
    b.returns(z)
    assert once(b.build(), [y, z]) == [None, None]


def test_different_device_orders_do_not_mix() -> None:
    b = Builder(m=mesh("p=2"), other=Mesh([("p", 2)], [1, 0]))
    x, y = b.value((8,), '[{"p", ?}]'), b.value((8,), "<@other, [{?}]>")
    total = b.elementwise(x, y)
    b.returns(total)
    assert once(b.build(), [y, total]) == ["[{?}]", None]


# Groups. Source: docs/semantics/propagation.md#sharding-groups


def test_members_of_a_group_get_the_whole_sharding() -> None:
    b = builder()
    x, y, z = b.value(S, '[{"p"}, {?}]'), b.value(S), b.value(S)
    first = b.elementwise(x)
    member = b.elementwise(y)
    last = b.elementwise(z)
    b.groups.append((first, member))
    b.returns(first, b.elementwise(member, last))
    row = '[{"p", ?}, {?}]'
    assert once(b.build(), [first, member, y, last, z]) == [row] * 5


def test_a_group_is_told_in_its_order_and_pushes_the_users() -> None:
    b = builder()
    early = b.value(S)
    user = b.elementwise(early)
    x = b.value(S, '[{"p"}, {?}]')
    later = b.elementwise(x)
    b.groups.append((early, later))
    b.returns(user, later)
    assert once(b.build(), [early, user]) == ['[{"p", ?}, {?}]'] * 2


def test_a_group_of_one_is_no_group() -> None:
    b = builder()
    x = b.value(S, '[{"p"}, {?}]')
    y = b.elementwise(x)
    b.groups.append((y,))
    b.returns(y)
    assert once(b.build(), [y]) == ['[{"p", ?}, {?}]']


# The engine itself


def test_a_second_run_of_the_same_kind_changes_nothing() -> None:
    b = builder()
    x = b.value(S, '[{"p"}, {?}]')
    y = b.elementwise(b.dot(x, b.value(S, '[{?}, {"q"}]')))
    b.returns(y)
    engine = PropagationEngine(b.build())
    engine.run(Strategy.AGGRESSIVE, LAST_ROUND)
    before = list(engine.shardings)
    engine.run(Strategy.AGGRESSIVE, LAST_ROUND)
    assert engine.shardings == before


@pytest.mark.parametrize(
    ("strategy", "rule", "axes", "operands", "results", "first", "last"),
    [
        # kj of the second result cannot hold what j takes there, so i, which conflicts with it, gets its turn
        (
            Strategy.AGGRESSIVE, "<([j, k, i])->([i, k], [i, kj], [ikj]) {i=4, j=12, k=8}>", "p=12 q=4",
            {(12, 8, 4): '[{"p", ?}, {}, {?}]'}, ['[{"q":(2)2, ?}, {}]', '[{?}, {"q", ?}]', "[{?}]"],
            ['[{"p", ?}, {}, {"q":(2)2, ?}]', '[{"q":(2)2, ?}, {}]', '[{?}, {"q", ?}]', "[{?}]"],
            ['[{"p", ?}, {}, {"q":(2)2, ?}]', '[{"q":(2)2, ?}, {}]', '[{?}, {"q", ?}]', '[{"q":(2)2, ?}]'],
        ),
        # p:(8)3 cannot stand beside p:(1)3, but beside p:(1)8, which that becomes
        (
            Strategy.BASIC, "<([k, j], [j, ki])->([i]) {i=2, j=8, k=8}>", "p=24",
            {(8, 8): '[{"p":(1)3, ?}, {}]', (8, 16): '[{}, {"p"}]'}, [None],
            ['[{"p":(1)8, ?}, {}]', '[{}, {"p"}]', None],
            ['[{"p":(1)8, ?}, {}]', '[{}, {"p"}]', '[{"p":(8)3, ?}]'],
        ),
    ],
)  # fmt: skip
def test_a_step_that_gives_more_when_repeated_is_repeated(
    strategy: Strategy,
    rule: str,
    axes: str,
    operands: dict[tuple[int, ...], str],
    results: list[str | None],
    first: list[str | None],
    last: list[str | None],
) -> None:
    b = builder(mesh(axes))
    values = [b.value(shape, given) for shape, given in operands.items()]
    values += b.op("custom", rule, *values, shardings=results, is_erasable=False)
    b.returns()
    assert once(b.build(), values, strategy) == first
    option = StrategyOption(strategy.value)
    found = propagate_program(b.build(), PropagateOptions(option, user_priorities=False)).shardings
    assert [text(found[value]) for value in values] == last


def test_the_program_is_not_changed() -> None:
    b = builder()
    x = b.value(S, '[{"p"}, {?}]')
    b.returns(b.elementwise(x))
    program = b.build()
    before = program.shardings
    PropagationEngine(program).run(Strategy.BASIC, LAST_ROUND)
    assert program.shardings is before


def test_conservative_propagation_leaves_edges_and_results_alone() -> None:
    b = builder(mesh("p=4"))
    x = b.value(S, '[{"p":(1)2}, {}]')
    y = b.elementwise(x)
    z = b.barrier(x, Direction.BOTH)
    results = b.returns(x, y, z)
    engine = PropagationEngine(b.build(), is_conservative=True)
    engine.run(Strategy.BASIC, LAST_ROUND)
    part = '[{"p":(1)2, ?}, {?}]'
    assert [text(engine.shardings[value]) for value in (y, z, *results)] == [None, part, part, None, part]


def test_product_rule_of_the_builder() -> None:
    b = builder()
    b.returns(b.dot(b.value(S), b.value(S)))
    assert str(b.ops[1].rule) == MATMUL
