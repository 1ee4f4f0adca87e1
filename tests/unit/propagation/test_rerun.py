"""Runs with other annotations on small programs.

Source: docs/semantics/propagation.md#running-again-after-an-edit
"""

from __future__ import annotations

import pytest

from pyshardy.core.notation import parse_sharding
from pyshardy.core.sharding import TensorSharding
from pyshardy.propagation.layout import Layout
from pyshardy.propagation.options import PropagateOptions
from pyshardy.propagation.program import Program
from pyshardy.propagation.rerun import Rerun, rerun
from pyshardy.propagation.run import propagate_program
from pyshardy.propagation.timeline import ShardingTimeline
from pyshardy.rules.properties import Priority
from pyshardy.rules.rule_builder import identity_rule
from support.edits import with_changes
from support.small_programs import Builder

from ..core.short import mesh

S = (8, 8)
OPTIONS = PropagateOptions()


def timeline_of(program: Program) -> ShardingTimeline:
    recording = propagate_program(program, OPTIONS).recording
    assert recording is not None
    return ShardingTimeline(Layout(program, OPTIONS, recording), recording.visits)


def sharding(text: str | None) -> TensorSharding | None:
    return None if text is None else parse_sharding(f"<@m, {text}>")


def again(program: Program, value: int, text: str | None, most: int = 1000) -> Rerun | None:
    """The run with another annotation of a value; what it gives is that of a run over everything."""
    found = rerun(timeline_of(program), {value: sharding(text)}, most)
    if found is not None:
        before = propagate_program(program, OPTIONS).shardings
        expected = propagate_program(with_changes(program, {value: sharding(text)}), OPTIONS).shardings
        assert [found.shardings.get(number, one) for number, one in enumerate(before)] == list(expected)
    return found


def two_chains() -> tuple[Program, int, int]:
    """Two chains of ten ops that have nothing in common; their first values."""
    b = Builder(m=mesh("p=2 q=2"))
    firsts = [b.value(S, '[{"p", ?}, {?}]') for _ in range(2)]
    ends = []
    for first in firsts:
        value = first
        for _ in range(10):
            value = b.elementwise(value)
        ends.append(value)
    b.returns(*ends)
    return b.build(), *firsts


def test_only_what_the_edit_reaches_is_visited() -> None:
    program, first, second = two_chains()
    found = again(program, second, '[{"q", ?}, {?}]')
    assert found is not None
    assert found.ops == 11
    assert second in found.shardings and first not in found.shardings
    assert len(found.shardings) == 12


@pytest.mark.parametrize("text", [None, '[{}, {"p"}]', '[{"p", "q"}, {}]', '[{"p"}, {}]'])
def test_annotations_change_and_go_away(text: str | None) -> None:
    program, _, second = two_chains()
    assert again(program, second, text) is not None


def test_an_edit_that_changes_nothing_visits_nothing() -> None:
    program, first, _ = two_chains()
    found = again(program, first, '[{"p", ?}, {?}]')
    assert found == Rerun({}, 0, 0)


def test_too_many_visits_are_left_to_a_run_over_everything() -> None:
    program, first, _ = two_chains()
    assert again(program, first, None, most=10) is None


def test_another_user_priority_takes_other_turns() -> None:
    program, first, _ = two_chains()
    assert again(program, first, '[{"q"}p1, {?}]') is None


def test_priorities_are_masked_and_restored() -> None:
    b = Builder(m=mesh("p=2 q=2"))
    x, y = b.value(S, '[{"p"}p1, {?}]'), b.value(S, '[{"q", ?}, {?}]')
    b.returns(b.elementwise(b.elementwise(x), b.elementwise(y)))
    program = b.build()
    assert again(program, y, '[{"q"}p1, {"p"}]') is not None
    assert again(program, y, None) is not None
    assert again(program, x, '[{"q"}p1, {?}]') is not None
    assert again(program, x, None) is None  # no priority is left


def test_members_of_a_group_follow() -> None:
    b = Builder(m=mesh("p=2 q=2"))
    x, y = b.value(S, '[{"p", ?}, {?}]'), b.value(S)
    one, other = b.elementwise(x), b.elementwise(y)
    b.groups.append((one, other))
    b.returns(one, other)
    found = again(b.build(), x, '[{?}, {"q", ?}]')
    assert found is not None
    assert found.shardings[y] is sharding('[{?}, {"q", ?}]')


def test_results_that_share_a_list_are_opened_together() -> None:
    rule = "<([i, j])->([i, j], [j, i]) {i=8, j=8}>"
    b = Builder(m=mesh("p=2"))
    x, y = b.value(S), b.value(S, '[{"p", ?}, {?}]')
    one, other = b.op("test.two", rule, x)
    b.returns(one, other, b.elementwise(y))
    program = b.build()
    assert again(program, x, '[{"p", ?}, {?}]') is not None
    assert again(program, x, "[{}, {}]") is not None


def test_dead_code_is_visited_as_long_as_it_is_there() -> None:
    b = Builder(m=mesh("p=2 q=2"))
    x, y = b.value(S, '[{"p", ?}, {?}]'), b.value(S)
    kept = b.elementwise(y)
    both = b.op("test.both", identity_rule(S, 2), x, y, priority=Priority.FIXED)[0]  # hands on to y, and goes
    b.elementwise(both)
    b.returns(kept)
    program = b.build()
    found = again(program, x, '[{?}, {"q", ?}]')
    assert found is not None
    assert found.shardings[y] is found.shardings[kept] is sharding('[{?}, {"q", ?}]')


def test_who_has_only_one_use_left_is_visited_at_once() -> None:
    """`one` waits in the first round because x has two uses; when the other is erased, it goes on without a sweep."""
    b = Builder(m=mesh("p=2 q=2"))
    x, y = b.value(S), b.value(S, '[{"p", ?}, {?}]')
    one = b.elementwise(x)
    b.elementwise(one, x)
    both = b.elementwise(one, y)
    b.returns(both)
    program = b.build()
    timeline = timeline_of(program)
    dead = program.owners[one] + 1
    assert timeline.layout.erasures.turns == {dead: dead}
    assert timeline.layout.erasures.woken == {program.owners[one]: [dead]}
    for text in ('[{?}, {"q", ?}]', None, '[{"q", ?}, {"p", ?}]'):
        assert again(program, x, text) is not None
        assert again(program, y, text) is not None


def test_ops_inside_of_a_dead_op_go_with_it() -> None:
    b = Builder(m=mesh("p=2 q=2"))
    x, y = b.value(S, '[{"p", ?}, {?}]'), b.value(S)
    region = len(b.ops)
    b.op("region", None, results=[])
    with b.inside(region):
        b.terminator(b.elementwise(x, y))
    b.returns(b.elementwise(y))
    program = b.build()
    assert timeline_of(program).layout.erasures.turns == dict.fromkeys(range(region, region + 3), region)
    found = again(program, x, '[{?}, {"q", ?}]')
    assert found is not None
    assert y not in found.shardings


def test_a_sharding_that_is_not_valid_is_left_to_a_run_over_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyshardy.errors import InvalidShardingError
    from pyshardy.propagation import layout

    program, first, _ = two_chains()
    recorded = timeline_of(program)

    def refuse(*_: object) -> None:
        raise InvalidShardingError("a step", got="nothing good")

    monkeypatch.setattr(layout, "propagate_step", refuse)
    assert rerun(recorded, {first: sharding('[{"q"}, {}]')}, 1000) is None
