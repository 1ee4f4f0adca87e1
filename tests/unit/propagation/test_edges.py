"""Data-flow edges, manual computations and results of the main function in a run.

Source: docs/semantics/propagation.md#what-is-visited
"""

from __future__ import annotations

from pyshardy.propagation.engine import PropagationEngine
from pyshardy.propagation.program import ManualView, Program
from pyshardy.propagation.step import Strategy
from support.small_programs import Builder

from ..core.short import sharding
from .engine_runs import S, builder, once, priorities
from .short import text

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
        view = ManualView(True, sharding(in_sharding), ("p",))
        edge_in = b.edge(argument, (number, 0), sharding="[{?}, {?}]", view=view, recognised=False)
        computed = b.elementwise(edge_in, sharding=inside)
        end = b.terminator(computed)
    edge_out = b.edge(result, (end, 0), sharding=out_sharding, view=ManualView(False, sharding(out_sharding), ("p",)))
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
