"""Chains of small programs, step by step."""

from __future__ import annotations

from pyshardy.core.axes import AxisRef
from pyshardy.explain.history import Chain, History, Link
from pyshardy.propagation.options import PropagateOptions
from pyshardy.propagation.program import ManualView, Program
from pyshardy.propagation.run import propagate_program
from support.chains import history_of, is_complete
from support.small_programs import Builder

from ..core.short import mesh, refs, sharding

S = (8, 8)
PQ = mesh("p=2 q=2")
P, Q = refs("p")[0], refs("q")[0]


def history(program: Program) -> History:
    return history_of(program, propagate_program(program, PropagateOptions(trace=True)))


def ends(chain: Chain) -> list[tuple[int, int, int, int]]:
    """The links of a chain without the numbers of their steps."""
    return [link[1:] for link in chain.links]


def test_an_axis_that_is_given_has_no_steps() -> None:
    b = Builder(m=PQ)
    x = b.value(S, '[{"p"}, {?}]')
    b.returns(b.elementwise(x))
    assert history(b.build()).chains(x, 0, P) == [Chain(P, x, 0, False, ())]


def test_a_chain_names_the_dimensions_it_comes_through() -> None:
    b = Builder(m=PQ)
    x = b.value(S, '[{"p"}, {?}]')
    y = b.transpose(x)
    z = b.elementwise(y)
    (result,) = b.returns(z)
    (chain,) = history(b.build()).chains(result, 1, P)
    assert (chain.origin, chain.origin_dim) == (x, 0)
    assert ends(chain) == [(x, 0, y, 1), (y, 1, z, 1), (z, 1, result, 1)]
    assert [link.step for link in chain.links] == sorted(link.step for link in chain.links)


def test_parts_of_an_axis_that_came_on_their_own_ways_have_a_chain_each() -> None:
    b = Builder(m=mesh("p=4"))
    x, y = b.value((4,), '[{"p":(1)2}]'), b.value((4,), '[{"p"}]')
    z = b.elementwise(x)
    b.returns(b.elementwise(z, y))
    found = history(b.build())
    chains = found.chains(z, 0, AxisRef("p"))
    assert {chain.origin for chain in chains} <= {x, y}
    assert is_complete(AxisRef("p"), chains, mesh("p=4"))


def test_a_copy_in_a_group_is_a_step() -> None:
    b = Builder(m=PQ)
    x, y = b.value(S, '[{"p"}, {?}]'), b.value(S)
    first, second = b.elementwise(x), b.elementwise(y)
    b.groups.append((first, second))
    b.returns(first, second)
    (chain,) = history(b.build()).chains(second, 0, P)
    assert ends(chain) == [(x, 0, first, 0), (first, 0, second, 0)]


def test_a_manual_axis_begins_at_the_computation() -> None:
    b = Builder(m=PQ)
    x = b.value(S)
    number = len(b.ops)
    (result,) = b.op("manual", None, x, results=[S])
    argument = b.value((4, 8), owner=number)
    outer = sharding('[{"p", ?}, {?}]')
    with b.inside(number):
        edge = b.edge(argument, (number, 0), sharding="[{?}, {?}]", view=ManualView(True, outer, ("p",)))
        b.terminator(b.elementwise(edge))
    b.returns(result)
    (chain,) = history(b.build()).chains(x, 0, P)
    assert (chain.origin, chain.is_manual) == (edge, True)
    assert ends(chain) == [(edge, 0, x, 0)]


def test_completeness() -> None:
    whole, axes = AxisRef("p"), mesh("p=4")
    first, second = AxisRef("p", 1, 2), AxisRef("p", 2, 2)

    def chains(*parts: AxisRef) -> list[Chain]:
        return [Chain(part, 0, 0, False, (Link(0, 0, 0, 1, 0),)) for part in parts]

    assert is_complete(whole, chains(whole), axes)
    assert is_complete(whole, chains(second, first), axes)
    assert not is_complete(whole, chains(first), axes)
    assert not is_complete(whole, chains(second), axes)
    assert not is_complete(whole, chains(whole, first), axes)
    assert not is_complete(whole, [], axes)
