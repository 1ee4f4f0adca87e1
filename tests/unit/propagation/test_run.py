"""Propagation over a whole program: which runs there are, in which order.

Source: docs/semantics/propagation.md#schedules
"""

from __future__ import annotations

import pytest

from pyshardy.propagation.engine import PropagationEngine
from pyshardy.propagation.options import PropagateOptions, StrategyOption
from pyshardy.propagation.program import Program
from pyshardy.propagation.run import propagate_program
from pyshardy.propagation.step import Strategy
from support.small_programs import Builder

from ..core.short import mesh
from .short import text

S = (8, 8)
BASIC, AGGRESSIVE = Strategy


def example() -> Program:
    b = Builder(m=mesh("p=2 q=2 r=2"))
    x = b.value(S, '[{"p"}p1, {"q"}p3]')
    b.returns(b.elementwise(x))
    return b.build()


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, Strategy]]:
    """User priority, op-priority round and strategy of every run."""
    seen: list[tuple[int, int, Strategy]] = []

    class Recording(PropagationEngine):
        def run(self, strategy: Strategy, round_: int) -> None:
            seen.append((self.user_priority, round_, strategy))
            super().run(strategy, round_)

    monkeypatch.setattr("pyshardy.propagation.run.PropagationEngine", Recording)
    return seen


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [(user, op, AGGRESSIVE) for user in (0, 1, 3) for op in range(5)]),
        ({"op_priorities": False}, [(0, 4, AGGRESSIVE), (1, 4, AGGRESSIVE), (3, 4, AGGRESSIVE)]),
        ({"user_priorities": False}, [(0, op, AGGRESSIVE) for op in range(5)]),
        ({"user_priorities": False, "op_priorities": False, "strategy": StrategyOption.BASIC}, [(0, 4, BASIC)]),
        ({"user_priorities": False, "op_priorities": False, "strategy": StrategyOption.BASIC_THEN_AGGRESSIVE},
         [(0, 4, BASIC), (0, 4, AGGRESSIVE)]),
        ({"user_priorities": False, "strategy": StrategyOption.BASIC_THEN_AGGRESSIVE},
         [(0, op, strategy) for op in range(5) for strategy in (BASIC, AGGRESSIVE)]),
    ],
)  # fmt: skip
def test_runs(options: dict, expected: list, runs: list) -> None:
    propagate_program(example(), PropagateOptions(**options))
    assert runs == expected


def test_basic_goes_first_where_it_can() -> None:
    b = Builder(m=mesh("p=2 q=2"))
    x, y = b.value(S, '[{"p"}, {?}]'), b.value(S, '[{?}, {"p"}]')
    product = b.dot(x, y)
    b.returns(b.elementwise(product, b.value(S, '[{?}, {"p"}]')))
    program = b.build()
    found = {
        option: text(propagate_program(program, PropagateOptions(option, False, False)).shardings[product])
        for option in StrategyOption
    }
    columns, rows = '[{?}, {"p", ?}]', '[{"p", ?}, {?}]'
    assert found == {
        StrategyOption.BASIC: columns,
        StrategyOption.AGGRESSIVE: rows,
        StrategyOption.BASIC_THEN_AGGRESSIVE: columns,
    }


def test_conservative_propagation() -> None:
    b = Builder(m=mesh("p=4 q=4"))
    x = b.value((8, 4), '[{"p", "q"}, {}]')
    (flat,) = b.op("reshape", "<([i, j])->([ij]) {i=8, j=4}>", x)
    b.returns(flat)
    found = {
        conservative: text(propagate_program(b.build(), PropagateOptions(conservative=conservative)).shardings[flat])
        for conservative in (False, True)
    }
    assert found == {False: '[{"p", "q":(1)2, ?}]', True: '[{"p", ?}]'}


def test_the_callback_sees_every_round_of_user_priorities() -> None:
    seen = []
    propagate_program(example(), after_user_priority=lambda priority, engine: seen.append((priority, type(engine))))
    assert seen == [(0, PropagationEngine), (1, PropagationEngine), (3, PropagationEngine)]


def test_the_result_has_one_sharding_per_value_and_the_program_is_not_changed() -> None:
    program = example()
    before = program.shardings
    found = propagate_program(program)
    assert len(found.shardings) == len(program.values)
    assert program.shardings is before
    assert found.erased == found.steps == ()


def test_an_empty_program() -> None:
    b = Builder(m=mesh("p=2"))
    b.returns()
    assert propagate_program(b.build()).shardings == ()


def test_a_program_without_meshes() -> None:
    b = Builder()
    b.returns(b.elementwise(b.value(S)))
    assert set(propagate_program(b.build()).shardings) == {None}


def test_drawing_a_program() -> None:
    b = Builder(m=mesh("p=2"))
    x = b.value(S)
    number = len(b.ops)
    b.op("computation", None, x, results=[S])
    with b.inside(number):
        b.terminator(b.elementwise(x, sharding='[{"p"}, {?}]'))
    assert str(b.build()).splitlines() == [
        "func.func()",
        "  v1 = computation(v0)",
        '    v2 = elementwise(v0) <@m, [{"p"}, {?}]>',
        "    terminator(v2)",
    ]
