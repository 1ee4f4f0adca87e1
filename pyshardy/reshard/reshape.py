"""The common axes of a reshape whose axes do not all fit the factors.

Source: docs/semantics/reshards-and-collectives.md#reshapes-that-do-not-fit
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.axis_lists import append_or_merge, common_prefix
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.propagation.projection import FactorState, TensorState, project, unproject
from pyshardy.reshard.factors import axes_of_tensor, shard_count
from pyshardy.rules.rule import Rule, TensorMapping


def reshape_axes(rule: Rule, states: Sequence[TensorState], mesh: Mesh) -> tuple[Axes, ...]:
    """The axes that every factor gets in both tensors of a reshape.

    All axes of the tensor with more shards are distributed over the factors of both sides. Axes on which both sides
    agree are kept.

    >>> from pyshardy.core.notation import parse_sharding
    >>> from pyshardy.reshard.factors import project_tensors
    >>> from pyshardy.rules.notation import parse_rule
    >>> rule = parse_rule("<([ijk])->([i, j, k]) {i=2, j=3, k=5}>")
    >>> mesh = Mesh([("a", 2), ("b", 4)])
    >>> shardings = [parse_sharding('<@m, [{"b"}]>'), parse_sharding('<@m, [{"a"}, {}, {"b"}]>')]
    >>> reshape_axes(rule, project_tensors(rule, shardings, mesh), mesh)
    ((AxisRef('a'),), (), ())
    """
    operand, result = states
    preferred = operand if shard_count(operand, mesh) >= shard_count(result, mesh) else result
    axes = axes_of_tensor(preferred)
    dealt = [_deal(state, mapping, axes, rule, mesh) for state, mapping in zip(states, rule.tensors)]
    return tuple(_shared(dealt, factor) for factor in range(len(rule.factor_sizes)))


def _shared(states: Sequence[TensorState], factor: int) -> Axes:
    found = [state.factors[factor].axes for state in states if factor in state.factors]
    if not found:
        return ()
    return found[0] if len(found) == 1 else common_prefix(*found)


def _deal(state: TensorState, mapping: TensorMapping, axes: Axes, rule: Rule, mesh: Mesh) -> TensorState:
    """The factors of one side after distributing the axes to them and making a sharding of the result."""
    factors = [factor for dim in mapping for factor in dim if factor in state.factors]
    given, rest = _hand_out(axes, [rule.factor_sizes[factor] for factor in factors], mesh)
    dealt = {
        factor: FactorState(tuple(own), True, state.factors[factor].is_minor_most)
        for factor, own in zip(factors, given)
    }
    if rest and factors:
        _append_overflow(dealt[factors[-1]], rest, mesh)
    dims = unproject(TensorState(dealt, ()), mapping, rule.factor_sizes, mesh)
    return project(TensorSharding(mesh, dims), mapping, rule.factor_sizes, mesh)


def _append_overflow(last: FactorState, rest: Axes, mesh: Mesh) -> None:
    """Append the axes that no factor takes after the last factor."""
    axes = list(last.axes)
    for axis in rest:
        append_or_merge(axes, axis, mesh)
    last.axes = tuple(axes)


def _hand_out(axes: Axes, sizes: Sequence[int], mesh: Mesh) -> tuple[list[list[AxisRef]], Axes]:
    """Give every factor the axes that divide it, trying the first factor again after every whole axis.

    Returns:
        The axes of every factor, and those that no factor takes.
    """
    room, queue = list(sizes), list(axes)
    given: list[list[AxisRef]] = [[] for _ in sizes]
    while queue and _give_first(room, queue, given, mesh):
        pass
    return given, tuple(queue)


def _give_first(room: list[int], queue: list[AxisRef], given: list[list[AxisRef]], mesh: Mesh) -> bool:
    """Give the first axis of the queue, or parts of it, to the factors in order; return whether any took a part."""
    progressed = False
    for index in range(len(room)):
        length = queue[0].length(mesh)
        part = gcd(room[index], length)
        if room[index] <= 1 or (part == 1 and length != 1):
            continue
        progressed = True
        room[index] //= part
        append_or_merge(given[index], queue[0].head(part, mesh), mesh)
        if part == length:
            queue.pop(0)
            break
        queue[0] = queue[0].tail(part, mesh)
    return progressed
