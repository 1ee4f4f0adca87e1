"""Ops that nobody uses go during a run.

Source: docs/semantics/propagation.md#dead-ops
"""

from __future__ import annotations

from pyshardy.propagation.engine import PropagationEngine
from pyshardy.propagation.options import PropagateOptions, StrategyOption
from pyshardy.propagation.run import propagate_program
from pyshardy.propagation.step import Strategy

from .engine_runs import S, builder, once
from .short import BINARY, text


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


# What is special. Source: docs/semantics/propagation.md#what-is-visited
