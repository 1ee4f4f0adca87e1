"""Mismatches: tensors of ops that must be resharded, and the tensors that keep their axes.

Source: docs/semantics/reshards-and-collectives.md#ops-with-a-rule
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import lists_overlap
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding, is_equivalent
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.errors import ShardyError
from pyshardy.explain.why import Why
from pyshardy.propagation.origins import CONSTRAINT
from pyshardy.propagation.views import to_other_side
from pyshardy.reshard.collective_plan import plan_collectives
from pyshardy.reshard.factors import project_tensors
from pyshardy.reshard.plan import OpInput, OpPlan, plan_op
from pyshardy.rules.properties import EDGE
from pyshardy.rules.rule import FactorKind, Rule

DECIDED_BY_LAST = frozenset((CONSTRAINT, EDGE, "sdy.func_data_flow_edge", "func.return"))
"""Ops whose last tensor decides the shardings of all others."""
_BARRIER = "sdy.propagation_barrier"


class Mismatch(NamedTuple):
    """A tensor of an op that must be resharded.

    Attributes:
        op: The op, or the number of a result of the main function.
        tensor: The number of the tensor, operands first.
        value: The value.
        has: Its sharding.
        needs: The sharding that the op needs; for a result, the sharding that the op gives it.
        winner: The number of the tensor that keeps its axes instead; None if the op itself is the reason.
        bytes_per_device: The most bytes that a device sends to reshard it.
    """

    op: int
    tensor: int
    value: int
    has: TensorSharding | None
    needs: TensorSharding
    winner: int | None
    bytes_per_device: int


def mismatches(why: Why) -> Iterator[Mismatch]:
    """All conflicts between two shardings, in program order."""
    subject = why.subject
    meshes = subject.program.meshes
    plans: dict[OpInput, OpPlan | None] = {}
    count = subject.op_count + len(subject.program.main_results)
    for op in range(count):
        kind = subject.kind(op)
        if kind.rule is None or kind.name == _BARRIER or op in subject.erased:
            continue
        values = subject.tensors(op)
        shardings = [subject.sharding(value) if value >= 0 else None for value in values]
        if not any(shardings):
            continue
        if kind.name in DECIDED_BY_LAST:
            yield from _identity(why, op, values, shardings)
            continue
        if kind.rule.is_custom:
            continue
        key = OpInput(
            kind.name, kind.rule, tuple([value_shape(why, value) for value in values]), tuple(shardings), True
        )
        if key not in plans:
            try:
                plans[key] = plan_op(key, meshes)
            except ShardyError:  # partitioning says so
                plans[key] = None
        plan = plans[key]
        if plan is not None and any(plan.targets):
            yield from _of_plan(why, op, kind.rule, values, shardings, plan)


def value_shape(why: Why, value: int) -> tuple[int, ...] | None:
    """The shape of a value."""
    return why.subject.program.shapes[value] if value >= 0 else None


def _identity(why: Why, op: int, values: Sequence[int], shardings: list[TensorSharding | None]) -> Iterator[Mismatch]:
    view = why.subject.program.views.get(op)
    target = to_other_side(view, shardings[-1]) if view is not None else shardings[-1]
    if op >= why.subject.op_count:
        target = why.subject.final_sharding(values[-1]) or target
    if target is None:
        return
    for tensor, (value, has) in enumerate(zip(values[:-1], shardings[:-1])):
        if not is_equivalent(has or TensorSharding.fully_replicated(target.mesh, target.rank), target):
            yield Mismatch(op, tensor, value, has, target, len(values) - 1, _bytes(why, value, has, target))


def _of_plan(
    why: Why, op: int, rule: Rule, values: Sequence[int], shardings: list[TensorSharding | None], plan: OpPlan
) -> Iterator[Mismatch]:
    mesh = mesh_of(next(one for one in plan.targets if one is not None), why.subject.program.meshes)
    for tensor, target in enumerate(plan.targets):
        if target is None or values[tensor] < 0:
            continue
        has, value = shardings[tensor], values[tensor]
        is_result = tensor >= len(rule.operands)
        sent = _bytes(why, value, target, has) if is_result else _bytes(why, value, has, target)
        winner = _winner(rule, tensor, shardings, target, mesh)
        yield Mismatch(op, tensor, value, has, target, winner, sent)


def _winner(
    rule: Rule, loser: int, shardings: Sequence[TensorSharding | None], target: TensorSharding, mesh: Mesh
) -> int | None:
    """The tensor whose axes the resharded tensor must follow, or that uses its axes elsewhere."""
    before = project_tensors(rule, shardings, mesh)
    after = project_tensors(rule, [target if tensor == loser else one for tensor, one in enumerate(shardings)], mesh)
    axes = [{factor: state.axes for factor, state in one.factors.items()} for one in before]
    wanted = {factor: state.axes for factor, state in after[loser].factors.items()}
    changed = [factor for factor, found in wanted.items() if found != axes[loser].get(factor, ())]
    others = [tensor for tensor in range(len(shardings)) if tensor != loser]
    for factor in changed:
        for tensor in others:
            if wanted[factor] and axes[tensor].get(factor) == wanted[factor]:
                return tensor
    for factor in changed:
        lost: Axes = axes[loser].get(factor, ())
        for tensor in others:
            if any(lists_overlap(lost, found) for other, found in axes[tensor].items() if other != factor):
                return tensor
        for tensor in others:
            if lost and axes[tensor].get(factor) == wanted[factor]:
                return tensor
    return None


def _bytes(why: Why, value: int, before: TensorSharding | None, after: TensorSharding | None) -> int:
    """The bytes that every device sends for a reshard; 0 if collectives cannot do it."""
    shape, meshes = value_shape(why, value), why.subject.program.meshes
    some = after or before
    if shape is None or some is None or -1 in shape:
        return 0
    after = after or TensorSharding.fully_replicated(some.mesh, len(shape))
    mesh = mesh_of(after, meshes)
    try:
        steps = plan_collectives(before, after, None if before is None else mesh_of(before, meshes), mesh, shape)
    except ShardyError:
        return 0
    size = why.subject.size_in_bytes(value)
    return sum(step.sent_bytes_per_device(size, shape, mesh_of(step.after, meshes)) for step in steps or ())


def clashing(why: Why, mismatch: Mismatch) -> Iterator[tuple[int, int, Axes]]:
    """The values and dimensions of a conflict: those that lose axes, and those that keep them."""
    subject = why.subject
    dims = range(mismatch.needs.rank)
    has = [() if mismatch.has is None else mismatch.has.dims[dim].axes for dim in dims]
    needs = [mismatch.needs.dims[dim].axes for dim in dims]
    changed = [dim for dim in dims if has[dim] != needs[dim]]
    for dim in changed:
        if has[dim]:
            yield subject.holder(mismatch.value), dim, has[dim]
    if mismatch.winner is None:
        return
    winner = subject.holder(subject.tensors(mismatch.op)[mismatch.winner])
    axes = [axis for dim in changed for axis in (*has[dim], *needs[dim])]
    sharding = subject.sharding(winner)
    for dim, given in enumerate(() if sharding is None or winner == subject.holder(mismatch.value) else sharding.dims):
        if lists_overlap(given.axes, axes):
            yield winner, dim, given.axes


def split_dims(why: Why, op: int, kind: FactorKind) -> Iterator[tuple[int, int, Axes]]:
    """The operands of an op that are sharded along factors of a kind: their values, dimensions and axes."""
    subject = why.subject
    rule = subject.rule(op)
    assert rule is not None
    values = subject.tensors(op)
    for factor in rule.factors_of(kind):
        for tensor, mapping in enumerate(rule.operands):
            sharding = subject.sharding(values[tensor])
            for dim, factors in enumerate(() if sharding is None else mapping):
                axes = () if sharding is None else sharding.dims[dim].axes
                if factor in factors and axes:
                    yield values[tensor], dim, axes
