"""Which ops the rounds of op priorities visit.

Source: docs/semantics/propagation.md#op-priorities
"""

from __future__ import annotations

import pytest

from pyshardy.propagation.engine import PropagationEngine
from pyshardy.propagation.step import Strategy
from pyshardy.rules.properties import Priority

from .engine_runs import S, builder, once, priorities
from .short import text

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
