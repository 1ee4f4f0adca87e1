"""Laws of the chains of explanations. Every function yields the violations that it finds in a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.axis_lists import join_axes, subtract_axes
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.errors import ShardyError
from pyshardy.explain.history import Chain, History, axes_with_dims
from pyshardy.explain.subject import Subject
from pyshardy.propagation.options import PropagateOptions
from pyshardy.propagation.program import Program
from pyshardy.propagation.recorder import Visit
from pyshardy.propagation.run import Propagated, propagate_program
from pyshardy.propagation.step import StepInput, propagate_step
from pyshardy.propagation.trace import ERASED, GROUP_STEP
from pyshardy.rules.rule import Rule

Shardings = list[TensorSharding | None]


def history_of(program: Program, propagated: Propagated) -> History:
    """The history of a traced run, without any names."""
    return History(Subject(program, propagated.shardings, propagated.steps, ()))


def all_chains(history: History) -> Iterator[tuple[int, int, Chain]]:
    """Every chain with the value and the dimension it ends at."""
    for value, sharding in enumerate(history.subject.shardings):
        for dim, axis in axes_with_dims(sharding):
            for chain in history.chains(value, dim, axis):
                yield value, dim, chain


def is_complete(axis: AxisRef, chains: Sequence[Chain], mesh: Mesh) -> bool:
    """Whether chains cover all of an axis, and no part of it twice."""
    parts: Axes = tuple([chain.axis for chain in chains])
    reached = axis.pre_size
    for part in sorted(parts, key=lambda one: one.pre_size):
        if part.pre_size != reached:
            return False
        reached = part.end(mesh)
    return reached == axis.end(mesh)


def incomplete(history: History) -> Iterator[str]:
    """The axes of values that the chains do not cover exactly once."""
    meshes = history.subject.program.meshes
    for value, sharding in enumerate(history.subject.shardings):
        for dim, axis in axes_with_dims(sharding):
            chains = history.chains(value, dim, axis)
            assert sharding is not None
            if not is_complete(axis, chains, mesh_of(sharding, meshes)):
                yield f"{axis} on dimension {dim} of value {value} has the chains {chains}"
            if any(not _begins_at_annotation(history, chain) for chain in chains):
                yield f"{axis} on dimension {dim} of value {value} has a chain that begins at no annotation: {chains}"


def _begins_at_annotation(history: History, chain: Chain) -> bool:
    program = history.subject.program
    if chain.is_manual:
        views = [view for op, view in program.views.items() if chain.origin in program.results[op]]
        given = [axis for view in views for dim, axis in axes_with_dims(view.outer) if dim == chain.origin_dim]
    else:
        given = [axis for dim, axis in axes_with_dims(program.shardings[chain.origin]) if dim == chain.origin_dim]
    return any(axis.contains(chain.axis) for axis in given)


def not_replayed(history: History, visits: Sequence[Visit]) -> Iterator[str]:
    """The chains that do not produce their axis when they are replayed on a program without other shardings.

    Every step of a chain is done again, by the rule of its op, with its directions and strategy, on tensors that have
    nothing but what the chain brought so far, and what stands in front of the axis on the same dimension: an axis keeps
    its place behind others.
    """
    for value, dim, chain in all_chains(history):
        if not _replay(history, visits, chain):
            yield f"{chain.axis} on dimension {dim} of value {value} does not come by {chain}"


def _replay(history: History, visits: Sequence[Visit], chain: Chain) -> bool:
    subject = history.subject
    plans = _plans(visits)
    for link in chain.links:
        step = subject.steps[link.step]
        if step.op == GROUP_STEP:
            continue
        plan, current, op = plans[step.number]
        assert step.source_tensor is not None
        empty: Shardings = [*_in_front(plan.rule, current, step.target_tensor, step.dim, step.factor)]
        source, target = current[step.source_tensor], current[step.target_tensor]
        assert source is not None
        front = _front(source, link.source_dim, chain)
        if front is None:
            return False
        empty[step.source_tensor] = _joined(empty[step.source_tensor], front, link.source_dim)
        if target is not None and target.dims[step.dim].axes:
            empty[step.target_tensor] = _only(target, step.dim, target.dims[step.dim].axes)
        updates = dict(propagate_step(plan, empty, subject.program.meshes))
        new = updates.get(step.target_tensor)
        if new is None or not any(axis.contains(chain.axis) for axis in new.dims[step.dim].axes):
            return False
    return True


def _in_front(
    rule: Rule, current: Sequence[TensorSharding | None], target: int, dim: int, factor: int
) -> Iterator[TensorSharding | None]:
    """Of every tensor, the dimensions that fill the target's dimension in front of a factor."""
    factors = rule.tensors[target][dim]
    wanted = set(factors[: factors.index(factor)])
    for sharding, mapping in zip(current, rule.tensors):
        kept = {place for place, found in enumerate(mapping) if wanted.intersection(found)}
        if sharding is None or not kept:
            yield None
        else:
            axes = [given.axes if place in kept else () for place, given in enumerate(sharding.dims)]
            yield TensorSharding(sharding.mesh, [DimSharding(one, True) for one in axes])


def _joined(first: TensorSharding | None, second: TensorSharding, dim: int) -> TensorSharding:
    """The first with a dimension of the second."""
    if first is None:
        return second
    return first.with_dims(second.dims[dim] if place == dim else given for place, given in enumerate(first.dims))


def _plans(visits: Sequence[Visit]) -> list[tuple[StepInput, tuple[TensorSharding | None, ...], int]]:
    return [(visit[1], visit[2], visit[0]) for visit in visits if visit[0] not in (GROUP_STEP, ERASED)]


def _front(sharding: TensorSharding, dim: int, chain: Chain) -> TensorSharding | None:
    """The sharding with nothing but a dimension, up to the axis of a chain; None if that is not there."""
    axes = sharding.dims[dim].axes
    for index, axis in enumerate(axes):
        if axis.contains(chain.axis):
            return _only(sharding, dim, axes[: index + 1])
    return None


def _only(sharding: TensorSharding, dim: int, axes: tuple) -> TensorSharding:
    dims = [DimSharding(axes if index == dim else (), True) for index in range(sharding.rank)]
    return TensorSharding(sharding.mesh, dims)


def kept_without_origin(program: Program, history: History, chain: Chain, place: tuple[int, int]) -> str | None:
    """How an axis stays although the origin of its chain is removed; None if it goes, or comes from elsewhere."""
    value, dim = place
    without = _without_origin(program, chain)
    if without is None:
        return None
    try:
        found = propagate_program(without, PropagateOptions(trace=True))
    except ShardyError:
        return None
    other = history_of(without, found)
    for at, axis in axes_with_dims(found.shardings[value]):
        if at != dim or not axis.overlaps(chain.axis):
            continue
        for one in other.chains(value, dim, axis):
            same = one.origin == chain.origin and one.origin_dim == chain.origin_dim
            if same and one.axis.overlaps(chain.axis) and not one.is_manual:
                return f"{one.axis} of value {value} still comes from {chain.origin}, which has it no longer"
            if not one.is_manual and not _begins_at_annotation(other, one):
                return f"{one.axis} of value {value} comes from nowhere"
    return None


def _without_origin(program: Program, chain: Chain) -> Program | None:
    """The program without the axis where a chain begins; None for a manual axis, which is part of the op."""
    given = program.shardings[chain.origin]
    if chain.is_manual or given is None:
        return None
    mesh = mesh_of(given, program.meshes)
    dims = list(given.dims)
    dim = dims[chain.origin_dim]
    left = join_axes([subtract_axes(dim.axes, (chain.axis,), mesh)], mesh)
    dims[chain.origin_dim] = DimSharding(left, True if not left else dim.is_open, dim.priority)
    try:
        new = TensorSharding(given.mesh, dims, given.replicated, given.unreduced, given.reduction)
    except ShardyError:  # what is left of a sub-axis may be no valid list
        return None
    shardings = list(program.shardings)
    shardings[chain.origin] = new
    return replace(program, shardings=tuple(shardings))
