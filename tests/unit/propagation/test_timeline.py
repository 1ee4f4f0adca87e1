"""When a run wrote what.

Source: docs/semantics/propagation.md#running-again-after-an-edit
"""

from __future__ import annotations

from pyshardy.core.notation import parse_sharding
from pyshardy.propagation.layout import Layout, priorities_of
from pyshardy.propagation.options import PropagateOptions, StrategyOption
from pyshardy.propagation.program import Program
from pyshardy.propagation.recorder import Recording
from pyshardy.propagation.run import propagate_program
from pyshardy.propagation.step import Strategy
from pyshardy.propagation.timeline import ShardingTimeline
from support.small_programs import Builder

from ..core.short import mesh

S = (8, 8)


def chain(sharding: str = '[{"p", ?}, {?}]') -> tuple[Program, list[int]]:
    b = Builder(m=mesh("p=2 q=2"))
    values = [b.value(S, sharding)]
    for _ in range(3):
        values.append(b.elementwise(values[-1]))
    b.returns(values[-1])
    return b.build(), values


def timeline_of(program: Program, options: PropagateOptions = PropagateOptions()) -> ShardingTimeline:
    recording = propagate_program(program, options).recording
    assert recording is not None
    return ShardingTimeline(Layout(program, options, recording), recording.visits)


def test_turns_are_those_of_a_run() -> None:
    program, _ = chain('[{"p"}p1, {?}]')
    layout = Layout(program, PropagateOptions(strategy=StrategyOption.BASIC_THEN_AGGRESSIVE), Recording())
    assert layout.priorities == (0, 1)
    assert layout.turns[:3] == [(0, 0, Strategy.BASIC), (0, 0, Strategy.AGGRESSIVE), (0, 1, Strategy.BASIC)]
    assert len(layout.turns) == 2 * 5 * 2
    assert Layout(program, PropagateOptions(user_priorities=False), Recording()).priorities == (0,)


def test_values_before_and_behind_a_phase() -> None:
    program, values = chain()
    timeline = timeline_of(program)
    sharding = parse_sharding('<@m, [{"p", ?}, {?}]>')
    op = program.owners[values[1]]
    time = timeline.layout.sweep_of(op)
    assert timeline.before(values[1], time) is None
    assert timeline.after(values[1], time) is sharding
    assert timeline.before(values[0], time) is timeline.first[values[0]] is sharding
    assert values[1] in timeline.written[time]
    assert tuple(timeline.last[: len(program.shapes)]) == propagate_program(program).shardings


def test_who_is_told_next() -> None:
    program, values = chain()
    timeline = timeline_of(program)
    first, second = program.owners[values[1]], program.owners[values[2]]
    assert timeline.next_notified(second, -1) == timeline.layout.sweep_of(first)
    assert timeline.next_notified(second, timeline.layout.end) == timeline.layout.end


def test_priorities_are_restored_in_their_turn() -> None:
    program, values = chain('[{"p"}p1, {?}]')
    timeline = timeline_of(program)
    (turn,) = [number for number, turn in enumerate(timeline.layout.turns) if turn[:2] == (1, 0)]
    time = turn * timeline.layout.width
    assert timeline.originals == {values[0]: parse_sharding('<@m, [{"p"}p1, {?}]>')}
    assert timeline.before(values[0], time) is parse_sharding('<@m, [{}, {?}], replicated={"p"}>')
    assert timeline.after(values[0], time) is parse_sharding('<@m, [{"p"}, {?}]>')


def test_priorities_of_nothing() -> None:
    assert priorities_of([None]) == (0,)
