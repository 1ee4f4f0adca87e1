"""The fixed point over a program, in the order of the reference.

Source: docs/semantics/propagation.md#what-is-visited
Source: docs/semantics/propagation.md#the-fixed-point
Source: docs/semantics/propagation.md#sharding-groups
"""

from __future__ import annotations

import pytest

from pyshardy.core.mesh import Mesh
from pyshardy.graph.program import NO_VALUE, Direction, Program, View
from pyshardy.propagation.engine import PropagationEngine
from pyshardy.propagation.options import PropagateOptions, StrategyOption
from pyshardy.propagation.run import propagate_program
from pyshardy.propagation.schedule import LAST_ROUND
from pyshardy.propagation.step import Strategy
from pyshardy.rules.properties import Priority
from support.small_programs import Builder

from ..core.short import mesh, sharding
from .short import BINARY, MATMUL, text

S = (8, 8)
PQR = mesh("p=2 q=2 r=2")
STRATEGIES = pytest.mark.parametrize("strategy", Strategy)


def once(program: Program, values: list[int], strategy: Strategy = Strategy.BASIC) -> list[str | None]:
    """The shardings of some values after one run, as `sdy-basic-propagate` makes it."""
    engine = PropagationEngine(program)
    engine.run(strategy, LAST_ROUND)
    return [text(engine.shardings[value]) for value in values]


def priorities(program: Program, values: list[int]) -> list[str | None]:
    """The same after all rounds of op priorities."""
    found = propagate_program(program, PropagateOptions(user_priorities=False))
    return [text(found.shardings[value]) for value in values]


def builder(axes: Mesh = PQR) -> Builder:
    return Builder(m=axes)


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


def test_a_dead_chain_still_propagates_before_it_goes() -> None:
    b = builder()
    x, y = b.value(S, '[{"p"}, {?}]'), b.value(S)
    sine = b.elementwise(x)
    total = b.elementwise(sine, y)
    b.elementwise(total)
    b.returns()
    program = b.build()
    found = propagate_program(program, PropagateOptions(StrategyOption.BASIC, op_priorities=False))
    assert text(found.shardings[y]) == '[{"p", ?}, {?}]'
    assert [program.ops[number].name for number in found.erased] == ["elementwise"] * 3


def test_an_op_that_is_dead_from_the_start_passes_nothing_on() -> None:
    b = builder()
    x, y = b.value(S, '[{"p"}, {?}]'), b.value(S)
    b.elementwise(x, y)
    b.returns(y)
    assert once(b.build(), [y]) == [None]


def test_ops_with_effects_stay() -> None:
    b = builder()
    x, y = b.value(S, '[{"p"}, {?}]'), b.value(S)
    b.op("effect", BINARY, x, y, is_erasable=False)
    b.returns()
    found = propagate_program(b.build())
    assert text(found.shardings[y]) == '[{"p", ?}, {?}]'
    assert found.erased == ()


def test_inside_a_dead_op_everything_goes() -> None:
    b = builder()
    x = b.value(S)
    number = len(b.ops)
    b.op("computation", None, x, results=[S])
    with b.inside(number):
        inner = b.elementwise(x)
        b.terminator(inner)
    b.returns()
    program = b.build()
    assert propagate_program(program).erased == (number, number + 1, number + 2)


def test_an_op_with_one_use_left_is_looked_at_when_another_goes() -> None:
    # the dead user keeps sine waiting in round 0; without it, sine and the product run before the dot
    b = builder()
    x, y = b.value(S, '[{"p"}, {?}]'), b.value(S, '[{?}, {"p"}]')
    sine = b.elementwise(x)
    b.elementwise(sine)
    total = b.elementwise(sine)
    b.returns(total, y)
    engine = PropagationEngine(b.build())
    engine.run(Strategy.AGGRESSIVE, 0)
    assert text(engine.shardings[total]) == '[{"p", ?}, {?}]'


# Op priorities. Source: docs/semantics/propagation.md#op-priorities


def test_elementwise_ops_go_first() -> None:
    b = builder()
    a, other, c = b.value(S, '[{"p", ?}, {?}]'), b.value(S), b.value(S, '[{?}, {"p", ?}]')
    product = b.dot(a, other)
    difference = b.elementwise(product, c)
    b.returns(difference)
    columns = '[{?}, {"p", ?}]'
    assert once(b.build(), [product, difference], Strategy.AGGRESSIVE) == ['[{"p", ?}, {?}]'] * 2
    assert priorities(b.build(), [product, difference, other]) == [columns] * 3


@pytest.mark.parametrize(
    ("priority", "waits"), [(Priority.PASS_THROUGH, True), (Priority.FORWARD, True), (Priority.FIXED, False)]
)
def test_in_round_0_operands_must_have_one_use(priority: Priority, waits: bool) -> None:
    b = builder()
    x = b.value(S, '[{"p"}, {?}]')
    first, second = (b.op("op", "<([i, j])->([i, j]) {i=8, j=8}>", x, priority=priority)[0] for _ in range(2))
    b.returns(first, second)
    engine = PropagationEngine(b.build())
    engine.run(Strategy.BASIC, 0)
    assert (engine.shardings[first] is None) is waits
    engine.run(Strategy.BASIC, 1)
    assert text(engine.shardings[first]) == '[{"p", ?}, {?}]'


def test_two_uses_by_one_op_are_two() -> None:
    b = builder()
    x = b.value(S, '[{"p"}, {?}]')
    square = b.elementwise(x, x)
    b.returns(square)
    engine = PropagationEngine(b.build())
    engine.run(Strategy.BASIC, 0)
    assert engine.shardings[square] is None


def test_scalars_may_have_many_uses_and_tokens_may_not() -> None:
    b = builder()
    scalar, token = b.value(()), b.value(None)
    x, y = b.value(S, '[{"p"}, {?}]'), b.value(S, '[{"p"}, {?}]')
    rule = "<([], [i, j])->([i, j]) {i=8, j=8}>"
    first, second = (b.op("op", rule, scalar, value, priority=Priority.PASS_THROUGH)[0] for value in (x, y))
    with_token = [b.op("op", rule, token, first, priority=Priority.PASS_THROUGH)[0] for _ in range(2)]
    b.returns(second, *with_token)
    engine = PropagationEngine(b.build())
    engine.run(Strategy.BASIC, 0)
    assert text(engine.shardings[second]) == '[{"p", ?}, {?}]'
    assert [engine.shardings[value] for value in with_token] == [None, None]


def test_other_ops_wait_for_rounds_2_and_3() -> None:
    b = builder()
    x, y = b.value(S, '[{"p"}, {?}]'), b.value(S, '[{?}, {"q"}]')
    z = b.value(S, '[{?}, {"r"}]')
    product = b.dot(x, y)
    reduced = b.dot(z, b.value(S))
    b.returns(product, reduced)
    engine, (_, right) = PropagationEngine(b.build()), b.ops[-2].operands
    seen = []
    for round_ in range(5):
        engine.run(Strategy.AGGRESSIVE, round_)
        seen.append((text(engine.shardings[product]), text(engine.shardings[right])))
    early, late = (None, None), ('[{"p", ?}, {"q", ?}]', '[{"r", ?}, {?}]')
    assert seen == [early, early, (late[0], None), late, late]


# What is special. Source: docs/semantics/propagation.md#what-is-visited


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


# Edges. Source: docs/semantics/propagation.md#data-flow-edges


def loop(b: Builder, *, inner: str | None = None) -> tuple[int, int, int, int]:
    """A loop that carries one value: its operand, its edge, the argument of its body, what the body computes."""
    x = b.value(S)
    number = len(b.ops)
    (result,) = b.op("while", None, x, results=[S])
    argument = b.value(S, owner=number)
    with b.inside(number):
        computed = b.elementwise(argument, sharding=inner)
        end = b.terminator(computed)
    edge = b.edge(result, (number, 0), (end, 0))
    b.holders[argument] = edge
    return x, edge, argument, computed


def test_an_edge_joins_all_that_a_loop_carries() -> None:
    b = builder()
    x, edge, argument, computed = loop(b, inner='[{"p", ?}, {?}]')
    y = b.elementwise(edge)
    b.returns(y)
    found = once(b.build(), [x, edge, computed, y])
    assert found == ['[{"p", ?}, {?}]'] * 4
    assert b.holders[argument] == edge


def test_an_edge_is_told_by_its_sources() -> None:
    # x gets its axis by the op behind the loop, after the edge was visited
    b = builder()
    x, edge, _, computed = loop(b)
    late = b.elementwise(x, sharding='[{"p", ?}, {?}]')
    b.returns(edge, late)
    assert once(b.build(), [x, edge, computed]) == ['[{"p", ?}, {?}]'] * 3


def named_computation(*, recognised: bool) -> tuple[Program, list[int]]:
    b = builder()
    x = b.value(S)
    sine = b.elementwise(x)
    number = len(b.ops)
    (result,) = b.op("computation", None, sine, results=[S])
    argument = b.value(S, owner=number)
    with b.inside(number):
        edge_in = b.edge(argument, (number, 0), recognised=recognised)
        cosine = b.elementwise(edge_in)
        end = b.terminator(cosine)
    edge_out = b.edge(result, (end, 0))
    late = b.elementwise(sine, sharding='[{"p", ?}, {?}]')
    b.returns(edge_out, late)
    return b.build(), [x, sine, late, edge_in, cosine, edge_out]


def test_edges_of_computations_are_not_told_by_their_operands() -> None:
    program, values = named_computation(recognised=False)
    assert once(program, values) == ['[{"p", ?}, {?}]'] * 3 + [None] * 3
    assert priorities(program, values) == ['[{"p", ?}, {?}]'] * 6


def test_other_edges_are_told() -> None:
    program, values = named_computation(recognised=True)
    assert once(program, values) == ['[{"p", ?}, {?}]'] * 6


# Manual computations. Source: docs/semantics/propagation.md#manual-computations


def manual(
    in_sharding: str, out_sharding: str, *, operand: str | None, inside: str | None, outside: str | None
) -> tuple[Program, list[int]]:
    """A computation that is manual over `p`; the edges hold what the sharding says without and with `p`."""
    b = builder()
    x = b.value(S, operand)
    number = len(b.ops)
    (result,) = b.op("manual", None, x, results=[S])
    argument = b.value((4, 8), owner=number)
    with b.inside(number):
        view = View(True, sharding(in_sharding), ("p",))
        edge_in = b.edge(argument, (number, 0), sharding="[{?}, {?}]", view=view, recognised=False)
        computed = b.elementwise(edge_in, sharding=inside)
        end = b.terminator(computed)
    edge_out = b.edge(result, (end, 0), sharding=out_sharding, view=View(False, sharding(out_sharding), ("p",)))
    y = b.elementwise(edge_out, sharding=outside)
    b.returns(y)
    return b.build(), [x, edge_in, computed, edge_out, y]


def test_manual_axes_stay_outside_on_the_way_in() -> None:
    program, values = manual(
        '[{"p", ?}, {?}]', '[{"p", ?}, {?}]', operand='[{"p", "q"}, {?}]', inside=None, outside=None
    )
    assert once(program, values) == [
        '[{"p", "q"}, {?}]', '[{"q", ?}, {?}]', '[{"q", ?}, {?}]', '[{"p", "q", ?}, {?}]', '[{"p", "q", ?}, {?}]'
    ]  # fmt: skip


def test_manual_axes_stay_outside_on_the_way_out() -> None:
    program, values = manual(
        '[{"p", ?}, {?}]', '[{"p", ?}, {?}]', operand=None, inside=None, outside='[{"p", "q"}, {"r"}]'
    )
    assert priorities(program, values) == [
        '[{"p", "q", ?}, {"r", ?}]', '[{"q", ?}, {"r", ?}]', '[{"q", ?}, {"r", ?}]', '[{"p", "q", ?}, {"r", ?}]',
        '[{"p", "q"}, {"r"}]',
    ]  # fmt: skip


def test_an_updated_edge_has_the_replicated_axes_of_the_computation() -> None:
    out = '[{"p", ?}, {?}], replicated={"r"}'
    program, values = manual('[{"p", ?}, {?}]', out, operand=None, inside='[{"q", ?}, {?}]', outside=None)
    assert once(program, values)[3] == '[{"p", "q", ?}, {?}], replicated={"r"}'


# Results of the main function. Source: docs/semantics/propagation.md#results-of-the-main-function


def test_results_give_to_values_and_take_from_them() -> None:
    b = builder()
    x = b.value(S, '[{"p"}, {?}]')
    y = b.elementwise(x)
    first, second = b.returns(y, y, shardings=['[{?}, {"q"}]', None])
    both = '[{"p", ?}, {"q", ?}]'
    assert once(b.build(), [x, y, first, second]) == ['[{"p"}, {"q", ?}]', both, '[{"p", ?}, {"q"}]', both]


def test_a_result_takes_part_in_every_round() -> None:
    b = builder()
    x = b.value(S)
    b.elementwise(x)
    b.elementwise(x)
    b.returns(x, shardings=['[{"p"}, {?}]'])
    engine = PropagationEngine(b.build())
    engine.run(Strategy.BASIC, 0)
    assert text(engine.shardings[x]) == '[{"p", ?}, {?}]'


def test_tokens_are_returned_without_a_step() -> None:
    b = builder()
    token = b.value(None)
    assert b.returns(token)
    assert b.build().main_results == ()


def test_what_a_result_gives_to_a_member_of_a_group_all_members_get() -> None:
    b = builder()
    x, y = b.value(S), b.value(S)
    z = b.elementwise(y)
    returned = b.returns(x, z, shardings=['[{"p"}, {?}]'])
    b.groups.append((x, y))
    row = '[{"p", ?}, {?}]'
    assert once(b.build(), [x, y, z, *returned]) == [row, row, row, '[{"p"}, {?}]', row]


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
