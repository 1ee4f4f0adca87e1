"""Why dimensions stayed whole: every reason, and on which level conflicts were decided."""

from __future__ import annotations

from pyshardy.core.mesh import Mesh
from pyshardy.explain.reason import Level, Reason, ReasonKind
from pyshardy.explain.whole import whole_reasons
from pyshardy.propagation.options import PropagateOptions
from pyshardy.propagation.program import Direction, ManualView
from pyshardy.propagation.run import propagate_program
from support.chains import history_of
from support.small_programs import Builder

from ..core.short import mesh, refs, sharding

S = (8, 8)
PQ = mesh("p=2 q=2")
P, Q = refs("p")[0], refs("q")[0]


def reasons(b: Builder, value: int, dim: int, **options: bool) -> list[Reason]:
    program = b.build()
    found = propagate_program(program, PropagateOptions(trace=True, **options))
    return whole_reasons(history_of(program, found), value, dim)


def reason(b: Builder, value: int, dim: int) -> Reason:
    return reasons(b, value, dim)[0]


def test_nobody_asked() -> None:
    b = Builder(m=PQ)
    x = b.value(S, '[{"p"}, {?}]')
    y = b.elementwise(x)
    b.returns(y)
    assert reason(b, y, 1) == Reason(ReasonKind.NOBODY)


def test_a_value_without_any_sharding() -> None:
    b = Builder(m=PQ)
    y = b.elementwise(b.value(S))
    b.returns(y)
    assert reason(b, y, 0) == Reason(ReasonKind.NOBODY)


def test_closed_by_an_annotation() -> None:
    b = Builder(m=PQ)
    x, y = b.value(S, '[{"p"}, {?}]'), b.value(S, "[{}, {?}]")
    b.returns(b.elementwise(x, y))
    found = reason(b, y, 0)
    assert (found.kind, found.axis, found.asker) == (ReasonKind.CLOSED, P, (x, 0))


def test_closed_though_nobody_asks() -> None:
    b = Builder(m=PQ)
    x = b.value(S, '[{"p"}, {}]')
    b.returns(b.elementwise(x))
    assert reason(b, x, 1) == Reason(ReasonKind.CLOSED)


def test_replicated_axes_are_not_used() -> None:
    b = Builder(m=PQ)
    x, y = b.value(S, '[{"p"}, {?}]'), b.value(S, '[{?}, {?}], replicated={"p"}')
    b.returns(b.elementwise(x, y))
    found = reason(b, y, 0)
    assert (found.kind, found.axis) == (ReasonKind.REPLICATED, P)


def test_taken_by_another_dimension() -> None:
    b = Builder(m=PQ)
    x, w = b.value(S, '[{"p"}, {?}]'), b.value(S, '[{?}, {"p"}]')
    y = b.dot(x, w)
    b.returns(y)
    found = reason(b, y, 1)
    assert found == Reason(ReasonKind.TAKEN, P, 1, (w, 1), (y, 0), Level.STRATEGY, P)


def test_taken_by_user_priority() -> None:
    b = Builder(m=PQ)
    x, w = b.value(S, '[{"p"}p0, {?}]'), b.value(S, '[{?}, {"p"}p1]')
    y = b.dot(x, w)
    b.returns(y)
    found = reason(b, y, 1)
    assert (found.kind, found.asker, found.winner) == (ReasonKind.TAKEN, (w, 1), (y, 0))
    assert found.level is Level.USER_PRIORITY


def test_taken_by_op_priority() -> None:
    b = Builder(m=PQ)
    x, w, z = b.value(S, '[{"p"}, {?}]'), b.value(S), b.value(S, '[{?}, {"p"}]')
    y = b.dot(x, w)
    b.returns(b.elementwise(y, z))
    found = reason(b, y, 0)
    assert (found.kind, found.asker, found.winner) == (ReasonKind.TAKEN, (x, 0), (y, 1))
    assert found.level is Level.OP_PRIORITY


def test_taken_where_an_annotation_gave_it() -> None:
    b = Builder(m=PQ)
    x, y = b.value(S, '[{"p"}, {?}]'), b.value(S, '[{?}, {"p"}]')
    b.returns(b.elementwise(x, y))
    found = reason(b, y, 0)
    assert (found.kind, found.level) == (ReasonKind.TAKEN, Level.GIVEN)


def test_a_conflict_of_two_axes_for_one_dimension() -> None:
    b = Builder(m=PQ)
    x, y = b.value(S, '[{"p"}, {?}]'), b.value(S, '[{"q"}, {?}]')
    z = b.elementwise(x, y)
    b.returns(z)
    found = reason(b, z, 0)
    assert (found.kind, found.axis, found.asker) == (ReasonKind.CONFLICT, P, (x, 0))
    assert (found.winner, found.held) == ((y, 0), Q)


def test_not_divisible() -> None:
    b = Builder(m=Mesh([("p", 3)]))
    x = b.value((24,), '[{"p"}]')
    (y,) = b.op("reshape", "<([ij])->([i, j]) {i=4, j=6}>", x)
    b.returns(y)
    for dim in (0, 1):
        assert reason(b, y, dim) == Reason(ReasonKind.NOT_DIVISIBLE, P, 1, (x, 0))


def test_what_would_split_a_part_unevenly_does_not_come() -> None:
    b = Builder(m=Mesh([("p", 3)]))
    x = b.value((4, 6), '[{"p"}, {?}]')
    (y,) = b.op("reshape", "<([i, j])->([ij]) {i=4, j=6}>", x)
    b.returns(y)
    assert reason(b, y, 0).kind is ReasonKind.NOT_DIVISIBLE


def test_blocked_by_a_rule() -> None:
    b = Builder(m=PQ)
    x = b.value(S, '[{"p"}, {?}]')
    (y,) = b.op("custom", "<([i, j])->([i, j]) {i=8, j=8} blocked_propagation={i}>", x)
    b.returns(y)
    found = reason(b, y, 0)
    assert (found.kind, found.axis, found.asker) == (ReasonKind.BLOCKED, P, (x, 0))


def test_blocked_by_a_barrier() -> None:
    b = Builder(m=PQ)
    x = b.value(S)
    y = b.barrier(x, Direction.FORWARD)
    z = b.elementwise(y, b.value(S, '[{"p"}, {?}]'))
    b.returns(z)
    assert reason(b, x, 0).kind is ReasonKind.BLOCKED


def test_shards_with_gaps() -> None:
    b = Builder(m=PQ)
    x = b.value((4, 6), '[{?}, {"p"}]')
    (y,) = b.op("reshape", "<([i, j])->([ij]) {i=4, j=6}>", x)
    b.returns(y)
    found = reason(b, y, 0)
    assert (found.kind, found.axis, found.asker) == (ReasonKind.GAPS, P, (x, 1))


def test_operands_follow_the_result_of_an_element_wise_op() -> None:
    b = Builder(m=PQ)
    x, y = b.value(S, '[{"p"}, {?}]'), b.value(S)
    z = b.elementwise(x, y, sharding="[{}, {?}]")
    b.returns(z)
    found = reason(b, y, 0)
    assert (found.kind, found.axis, found.winner) == (ReasonKind.FOLLOWS, P, (z, 0))


def test_a_manual_axis() -> None:
    b = Builder(m=PQ)
    x = b.value(S, '[{"p"}, {?}]')
    number = len(b.ops)
    (result,) = b.op("manual", None, x, results=[S])
    argument = b.value((4, 8), owner=number)
    outer = sharding('[{"p", ?}, {?}]')
    with b.inside(number):
        edge = b.edge(argument, (number, 0), sharding="[{?}, {?}]", view=ManualView(True, outer, ("p",)))
        b.terminator(b.elementwise(edge))
    b.returns(result)
    found = reason(b, edge, 0)
    assert (found.kind, found.axis) == (ReasonKind.MANUAL, P)


def test_an_op_without_a_rule() -> None:
    b = Builder(m=PQ)
    x = b.value(S, '[{"p"}, {?}]')
    (y,) = b.op("unknown", None, x, results=[S])
    b.returns(y)
    assert [one.kind for one in reasons(b, y, 0)] == [ReasonKind.NO_RULE, ReasonKind.NOBODY]


def test_a_dimension_of_size_one() -> None:
    b = Builder(m=PQ)
    x = b.value((1, 8), '[{?}, {"p"}]')
    b.returns(b.elementwise(x))
    assert reason(b, x, 0) == Reason(ReasonKind.SCALAR)


def test_every_whole_dimension_has_a_reason() -> None:
    b = Builder(m=PQ)
    x, w = b.value(S, '[{"p"}, {?}]'), b.value(S, '[{?}, {"p", "q"}]')
    y = b.elementwise(b.dot(x, w))
    b.returns(y, shardings=['[{}, {"q"}]'])
    program = b.build()
    history = history_of(program, propagate_program(program, PropagateOptions(trace=True)))
    for value, found in enumerate(history.subject.shardings):
        for dim, given in enumerate(() if found is None else found.dims):
            if not given.axes:
                assert whole_reasons(history, value, dim)
