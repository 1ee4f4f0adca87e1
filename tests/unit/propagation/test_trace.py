"""The record of what propagation did: complete, and free when nobody asked for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyshardy.core.mesh import Mesh
from pyshardy.propagation import recorder
from pyshardy.propagation.options import PropagateOptions, StrategyOption
from pyshardy.propagation.program import Direction, ManualView, Program
from pyshardy.propagation.run import Propagated, propagate_program
from pyshardy.propagation.step import Strategy
from pyshardy.propagation.trace import GROUP_STEP, MAIN_RESULT, Step
from support.small_programs import Builder
from support.traces import unexplained

from ..core.short import mesh, refs, sharding

S = (8, 8)
PQR = mesh("p=2 q=2 r=2")
ONCE = PropagateOptions(StrategyOption.BASIC, op_priorities=False, user_priorities=False, trace=True)
TRACED = PropagateOptions(trace=True)


def chain() -> Program:
    """A value, an op, a product and a result."""
    b = Builder(m=PQR)
    x, w = b.value(S, '[{"p"}, {?}]'), b.value(S, '[{?}, {"q"}]')
    b.returns(b.dot(b.elementwise(x), w))
    return b.build()


def priorities() -> Program:
    b = Builder(m=PQR)
    x, y = b.value(S, '[{"p"}p2, {"q", ?}p0], replicated={"r"}'), b.value(S, '[{"r", ?}p1, {?}p3]')
    b.returns(b.elementwise(b.elementwise(x, y), sharding='[{?}, {"p", ?}p7]'))
    return b.build()


def groups() -> Program:
    b = Builder(m=PQR)
    x, y = b.value(S, '[{"p"}, {?}]'), b.value(S)
    first, second = b.elementwise(x), b.elementwise(y)
    b.groups.append((first, second))
    b.returns(first, second, shardings=[None, '[{?}, {"q"}]'])
    return b.build()


def sub_axes() -> Program:
    b = Builder(m=mesh("p=12 q=2"))
    x = b.value((24, 4), '[{"p"}, {"q"}]')
    (split,) = b.op("reshape", "<([ij, k])->([i, j, k]) {i=4, j=6, k=4}>", x)
    (joined,) = b.op("reshape", "<([i, j, k])->([ij, k]) {i=4, j=6, k=4}>", split)
    b.returns(joined)
    return b.build()


def manual() -> Program:
    b = Builder(m=PQR)
    x = b.value(S)
    number = len(b.ops)
    (result,) = b.op("manual", None, x, results=[S])
    argument = b.value((4, 8), owner=number)
    outer = '[{"p", ?}, {?}]'
    with b.inside(number):
        edge = b.edge(argument, (number, 0), sharding="[{?}, {?}]", view=ManualView(True, sharding(outer), ("p",)))
        end = b.terminator(b.elementwise(edge))
    out = b.edge(result, (end, 0), sharding=outer, view=ManualView(False, sharding(outer), ("p",)))
    b.returns(b.elementwise(out, sharding='[{"p", "q"}, {"r"}]'))
    return b.build()


PROGRAMS = [chain, priorities, groups, sub_axes, manual]


@pytest.mark.parametrize("make", PROGRAMS)
@pytest.mark.parametrize("strategy", StrategyOption)
def test_every_axis_leads_back_to_an_annotation(make, strategy: StrategyOption) -> None:
    program = make()
    found = propagate_program(program, replace(TRACED, strategy=strategy))
    assert found.steps
    assert list(unexplained(program, found)) == []


@pytest.mark.parametrize("make", PROGRAMS)
@pytest.mark.parametrize("strategy", StrategyOption)
def test_tracing_does_not_change_the_result(make, strategy: StrategyOption) -> None:
    traced, plain = (propagate_program(make(), PropagateOptions(strategy, trace=trace)) for trace in (True, False))
    assert (traced.shardings, traced.erased) == (plain.shardings, plain.erased)
    assert plain.steps == ()


def test_without_tracing_no_step_is_explained_or_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a trace is being made")

    for name in ("Step", "explain_step", "steps_of"):
        monkeypatch.setattr(recorder, name, refuse)
    for make in PROGRAMS:
        assert propagate_program(make()).steps == ()
        assert propagate_program(make(), TRACED).steps  # noted, and not yet worked out
    with pytest.raises(AssertionError, match="a trace is being made"):
        list(propagate_program(chain(), TRACED).steps)


def test_the_steps_of_a_chain() -> None:
    x, w, y, product, result = range(5)
    both, basic = Direction.BOTH, Strategy.BASIC
    assert propagate_program(chain(), ONCE).steps == (
        Step(0, 1, x, y, 0, 1, 0, 0, refs("p"), True, both, basic, 0, 4),
        Step(1, 2, y, product, 0, 2, 0, 0, refs("p"), True, both, basic, 0, 4),
        Step(1, 2, w, product, 1, 2, 1, 1, refs("q"), True, both, basic, 0, 4),
        Step(2, MAIN_RESULT, product, result, 0, 1, 0, 0, refs("p"), True, both, basic, 0, 4),
        Step(2, MAIN_RESULT, product, result, 0, 1, 1, 1, refs("q"), True, both, basic, 0, 4),
    )


def test_rounds_are_recorded() -> None:
    found = propagate_program(chain(), TRACED).steps
    assert [(step.op, step.op_priority, step.strategy) for step in found[:2]] == [
        (1, 0, Strategy.AGGRESSIVE), (2, 2, Strategy.AGGRESSIVE)
    ]  # fmt: skip
    order = [step.user_priority for step in propagate_program(priorities(), TRACED).steps]
    assert order == sorted(order)
    assert set(order) == {0, 1, 3, 7}


def test_copies_between_members_of_a_group_are_recorded() -> None:
    program = groups()
    found = propagate_program(program, TRACED)
    first, second = program.groups[0]
    copies = [step for step in found.steps if step.op == GROUP_STEP]
    assert {(step.source, step.target) for step in copies} == {(first, second), (second, first)}
    assert all(step.axes for step in copies)
    assert found.shardings[first] is found.shardings[second] is sharding('[{"p", ?}, {"q", ?}]')


def test_results_of_the_main_function_are_recorded() -> None:
    program = groups()
    results = {result for _, result in program.main_results}
    targets = {step.target for step in propagate_program(program, TRACED).steps if step.op == MAIN_RESULT}
    assert targets & results
    assert targets - results  # what a result gave to the value


def test_directions_are_those_of_the_factor() -> None:
    b = Builder(m=PQR)
    b.returns(b.barrier(b.value(S, '[{"p"}, {?}]'), Direction.FORWARD))
    assert propagate_program(b.build(), TRACED).steps[0].direction is Direction.FORWARD


def test_steps_do_not_change_and_compare_by_content() -> None:
    (step, *_), (same, *_) = (propagate_program(chain(), TRACED).steps for _ in range(2))
    assert step == same
    assert hash(step) == hash(same)
    with pytest.raises(AttributeError):
        step.op = 5  # type: ignore[misc]


# The checker itself


def tampered(change) -> list[str]:
    program = chain()
    found = propagate_program(program, ONCE)
    return list(unexplained(program, Propagated(found.shardings, found.erased, change(found.steps))))


def test_the_checker_misses_no_gap() -> None:
    assert tampered(lambda steps: steps) == []
    assert tampered(lambda steps: steps[1:])[0].startswith('step 0 takes "p" from 2, which has []')
    assert tampered(lambda steps: steps[:-1]) == ['"q" of 4 was placed by no step']
    assert tampered(lambda steps: steps[::-1])
    assert tampered(lambda steps: (replace(steps[0], source=None), *steps[1:])) == [
        'step 0 places "p" on 2 from nowhere'
    ]


def test_the_checker_looks_at_parts_of_axes() -> None:
    b = Builder(m=Mesh([("p", 8)]))
    x = b.value((8,), '[{"p":(1)2}]')
    b.returns(b.elementwise(x))
    program = b.build()
    found = propagate_program(program, ONCE)
    whole = tuple(sharding('[{"p"}]') if one is not None else None for one in found.shardings)
    assert list(unexplained(program, found)) == []
    assert '"p" of 0 was placed by no step' in list(unexplained(program, Propagated(whole, (), found.steps)))
